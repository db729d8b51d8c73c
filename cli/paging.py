"""Pages of long lists: how many rows, and the command for the next page."""

import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, TypeVar

import typer

from cli import output
from kit.rpc.values import LIST_MOST_ROWS, LIST_ROWS

T = TypeVar("T")

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


def print_more(last_id: str) -> None:
    """Prints the command for the next page: this command, after the last id of this page."""
    words = iter(sys.argv[1:])
    kept = [
        word
        for word in words
        if not (word == "--after" and next(words, "")) and not word.startswith("--after=")
    ]
    output.note(f"[dim]More:[/dim] {shlex.join(['fiatgate', *kept, '--after', output.short(last_id)])}")
