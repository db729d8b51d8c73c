"""Pages of long lists: how many rows, and the command for the next page."""

import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Protocol, TypeVar

import typer
from google.protobuf.message import Message

from cli import output
from kit.rpc.values import LIST_MOST_ROWS, LIST_ROWS

T = TypeVar("T")
M = TypeVar("M", bound=Message)
M_contra = TypeVar("M_contra", bound=Message, contravariant=True)


class Table(Protocol[M_contra]):
    """Prints rows for people; `more`: there may be a next page."""

    def __call__(self, page: Sequence[M_contra], *, more: bool) -> None: ...


Limit = Annotated[int, typer.Option("--limit", min=1, max=LIST_MOST_ROWS, help="The most rows of a page.")]
ROWS = LIST_ROWS


def asked(limit: int) -> int:
    """Returns the rows to ask for: one more than are shown, which proves that there is a next page."""
    return min(limit + 1, LIST_MOST_ROWS)


def page(rows: Sequence[T], limit: int) -> Sequence[T]:
    """Returns the rows to show."""
    return rows[:limit]


def is_cut(rows: Sequence[T], limit: int) -> bool:
    """Returns whether there may be a next page."""
    return len(rows) > limit or len(rows) == LIST_MOST_ROWS


def print_page(
    found: Sequence[M], limit: int, *, table: Table[M], last_id: Callable[[M], str], as_json: bool
) -> None:
    """Prints the rows to show, as JSON or with `table`, and the command for the next page if there may be one."""
    rows, more = page(found, limit), is_cut(found, limit)
    if as_json:
        output.print_json([output.plain(each) for each in rows])
    else:
        table(rows, more=more)
    if more:
        print_more(last_id(rows[-1]))


def print_more(last_id: str, *, whole: bool = False) -> None:
    """Prints the command for the next page: this command, after the last id of this page. The id is whole where no
    service completes it.
    """
    words = _without_after(sys.argv[1:])
    after = last_id if whole else output.short(last_id)
    output.note(f"[dim]More:[/dim] {shlex.join(['fiatgate', *words, '--after', after])}")


def _without_after(words: Sequence[str]) -> list[str]:
    """Returns the words of a command without the option `--after` and its value."""
    kept = []
    is_value = False
    for word in words:
        if not is_value and word != "--after" and not word.startswith("--after="):
            kept.append(word)
        is_value = word == "--after"
    return kept
