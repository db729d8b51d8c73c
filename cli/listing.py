"""Lists: a page as a table or as JSON with the command for the next page, or all pages as CSV."""

import csv
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Final, TypeVar

import typer
from google.protobuf.message import Message
from rich.markup import escape

from cli import names, output, tables
from kit.base.cells import harmless
from kit.base.proto import datetime_from
from kit.rpc.values import LIST_MOST_ROWS, LIST_ROWS

R = TypeVar("R", bound=Message)
Row = dict[str, Any]

Limit = Annotated[int, typer.Option("--limit", min=1, max=LIST_MOST_ROWS, help="The most rows of a page.")]
ROWS: Final = LIST_ROWS


@dataclass(frozen=True, kw_only=True)
class Table:
    """The columns of a list, as "invoice_id: invoice | deal.status: state | age": fields of a row, with a heading that
    is not the field's name.

    stacks  the fields that share a column on a narrow terminal, as "invoice_id age | deal.status"
    empty   the sentence for no rows
    noun    one of the things, for the sentence above the table
    ids     the columns whose ids are short on a terminal
    csv     the columns of the file
    """

    columns: str
    empty: str
    stacks: str = ""
    noun: str = ""
    ids: tuple[str, ...] = ()
    csv: str = ""

    @cached_property
    def headings(self) -> dict[str, str]:
        return _headed(self.columns, tables.label)

    def show(self, rows: Sequence[Row], *next_commands: str, more: bool = False, above: str = "") -> None:
        """Prints the rows as they are with --json, else as a table below the sentence `above`, or the number of rows.

        The columns `age` and `merchant` come from `created_at` and `merchant_id`, unless a row has them.
        """
        if output.mode.json:
            output.print_json(rows)
            return
        output.overview(above or (counted(self.noun, rows, more=more) if self.noun else ""), *next_commands)
        if not rows:
            output.console.print(f"[dim]{escape(self.empty)}[/dim]")
            return
        stacks = [stack.split() for stack in self.stacks.split("|")] if self.stacks else ()
        output.print_rows(self._for_people(rows), self.headings, stacks=stacks)

    def show_all(self, messages: Iterable[Message]) -> None:
        self.show([output.plain(each) for each in messages])

    def _for_people(self, rows: Sequence[Row]) -> Sequence[Row]:
        short = output.shortened(row[name] for row in rows for name in self.ids if row[name])
        shown = [row | {name: short.get(row[name], row[name]) for name in self.ids} for row in rows]
        if "age" in self.headings:
            shown = [{"age": output.age(row.get("created_at"))} | row for row in shown]
        if "merchant" in self.headings:
            named = names.of_merchants(row["merchant_id"] for row in rows if row.get("merchant_id"))
            shown = [{"merchant": named.get(row.get("merchant_id", ""))} | row for row in shown]
        return shown


def counted(noun: str, rows: Sequence[Any], *, more: bool = False) -> str:
    """Returns the sentence above a list: "There are 2 invoices.", "The newest 100 invoices."; "" for an empty one."""
    if more:
        return f"The newest {len(rows)} {noun}s."
    if not rows:
        return ""
    return f"There is 1 {noun}." if len(rows) == 1 else f"There are {len(rows)} {noun}s."


def show_page(
    table: Table,
    request: R,
    call: Callable[[R], Any],
    things: str | Callable[[Any], list[Row]],
    id: str,
    *next_commands: str,
    limit: int,
    for_people: Callable[[Row], Row] = lambda row: {},
    lead: Callable[[Sequence[Row], bool], tuple[str, ...]] | None = None,
    narrower: str = "",
) -> None:
    """Prints a page of the list that `call` reads, or with --csv all pages.

    things      the field of an answer that has the rows, or a function that makes them
    id          the field of a row; `after_<id>` of the request begins the next page
    for_people  further fields of a row for the table
    lead        the sentence above the page and the next commands, where they depend on it
    narrower    the options for a shorter search, where a service stops a long one
    """
    if output.mode.csv:
        every = (
            row
            for page in pages(request, call, things, id, size=LIST_MOST_ROWS)
            for row in _named(page, table)
        )
        write_csv(every, table.csv)
        return
    request.limit = asked(limit)  # type: ignore[attr-defined]  # each list has it
    answer = call(request)
    found = _rows(answer, things)
    page, more = found[:limit], is_cut(found, limit)
    shown = page if output.mode.json else [row | for_people(row) for row in page]
    sentence, *commands = lead(page, more) if lead else ("", *next_commands)
    table.show(shown, *commands, more=more, above=sentence)
    if more:
        print_more(page[-1][id])
    elif reached := getattr(answer, f"reached_{id}", ""):
        until = f"{datetime_from(answer.reached_at):%Y-%m-%d %H:%M} UTC"
        output.note(f"Searched back to {until}. Give {narrower} for less.")
        print_more(reached)


def pages(
    request: R,
    call: Callable[[R], Any],
    things: str | Callable[[Any], list[Row]],
    id: str,
    *,
    after: str = "",
    size: int,
) -> Iterator[list[Row]]:
    """Yields all pages of a list, each when it is read."""
    request.limit = size  # type: ignore[attr-defined]  # each list has it
    while True:
        answer = call(request)
        page = _rows(answer, things)[:size]
        yield page
        last = getattr(answer, f"reached_{id}", "") or (page[-1][id] if len(page) == size else "")
        if not last:
            return
        setattr(request, after or f"after_{id}", last)


def _rows(answer: Any, things: str | Callable[[Any], list[Row]]) -> list[Row]:
    return (
        [output.plain(each) for each in getattr(answer, things)]
        if isinstance(things, str)
        else things(answer)
    )


def _named(page: Sequence[Row], table: Table) -> Iterator[Row]:
    """Yields the rows, with the merchant's name if the CSV file has a column for it."""
    named = names.of_merchants(row["merchant_id"] for row in page) if "merchant |" in table.csv else {}
    for row in page:
        yield row | {"merchant": named[row["merchant_id"]]} if named else row


def asked(limit: int) -> int:
    """Returns the rows to ask for: one more than are shown, which proves that there is a next page."""
    return min(limit + 1, LIST_MOST_ROWS)


def is_cut(rows: Sequence[Any], limit: int) -> bool:
    """Returns whether there may be a next page after `limit` rows."""
    return len(rows) > limit or len(rows) == LIST_MOST_ROWS


def print_more(last_id: object, *, whole: bool = False) -> None:
    """Prints the command for the next page: this command, after the last id of this page. The id is whole where no
    service completes it.
    """
    words = sys.argv[1:]
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if "--after" not in (before, word) and not word.startswith("--after=")
    ]
    after = str(last_id) if whole else output.short(str(last_id))
    output.note(f"[dim]More:[/dim] {shlex.join(['fiatgate', *kept, '--after', after])}")


def write_csv(rows: Iterable[Mapping[str, Any]], columns: str) -> None:
    """Prints a heading and a line for each row as it comes. A field without a value is an empty cell. Values are JSON
    values: true and false are written in lower case, lists with spaces between.
    """
    out = csv.writer(sys.stdout, lineterminator="\r\n")
    headings = _headed(columns, str)
    out.writerow(headings.values())
    for row in rows:
        out.writerow([_cell(tables.inside(row, path)) for path in headings])


def _headed(columns: str, heading_of: Callable[[str], str]) -> dict[str, str]:
    parts = (each.strip().partition(": ") for each in columns.split("|"))
    return {path: heading or heading_of(path) for path, _, heading in parts}


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return harmless(" ".join(map(str, value)) if isinstance(value, list) else str(value))
