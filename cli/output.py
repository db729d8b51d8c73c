"""Printing: tables for people, one JSON value for scripts, and refusals with their code.

The output for people leads with one sentence, then the next commands. The rest comes with `--all`.

JSON has the field names of the protos; enum values are the words of the API (`pending`, not
`INVOICE_STATUS_PENDING`); times are ISO 8601; a field without a value is null.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import typer
from google.protobuf.descriptor import EnumDescriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from rich.console import Console
from rich.markup import escape
from rich.measure import Measurement

from cli import tables
from cli.tables import Stacks
from kit.base.clock import SystemClock
from kit.base.ids import parse_id

Columns = Mapping[str, str]
"""The fields that a table shows, with their headings."""


@dataclass
class Mode:
    """The options of the running command that choose its output: --json, --csv, --all."""

    json: bool = False
    csv: bool = False
    everything: bool = False

    def set(self, *, json: bool = False, csv: bool = False, everything: bool = False) -> None:
        self.json, self.csv, self.everything = json, csv, everything


mode: Final = Mode()

SHORT_ID: Final = 13
"""Characters of an id in a table: the first 48 bits, which hold the time and often random bits."""

# Output to a pipe has no width to fit: each row stays on one line, so that grep finds whole values.
PIPED_WIDTH = 10_000

console = Console(highlight=False, width=None if sys.stdout.isatty() else PIPED_WIDTH)
_errors = Console(stderr=True, highlight=False)

_AGES = ((86_400, "d"), (3600, "h"), (60, "min"))


def plain(message: Message) -> dict[str, Any]:
    """Returns the message as JSON values."""
    return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def record(message: Message | Mapping[str, Any], *, title: str = "") -> None:
    """Prints one thing: an object, or a table of two columns, with a table for each list of things in it."""
    values = plain(message) if isinstance(message, Message) else dict(message)
    if mode.json:
        print_json(values)
        return
    lists = {name: value for name, value in values.items() if tables.is_list_of_records(value)}
    console.print(
        tables.card({name: value for name, value in values.items() if name not in lists}, title=title)
    )
    for name, rows in lists.items():
        console.print()
        print_rows(rows, tables.set_columns(rows), title=tables.label(name))


def groups(named: Mapping[str, Mapping[str, Any] | Sequence[Mapping[str, Any]]]) -> None:
    """Prints the facts of several things for people, each under its heading: a table of two columns for a mapping, a
    line for each entry of a list. Facts without a value are left out.
    """
    filled = {heading: facts for heading, facts in named.items() if facts}
    for number, (heading, facts) in enumerate(filled.items()):
        if number:
            console.print()
        if isinstance(facts, Mapping):
            console.print(
                tables.card(
                    {name: fact for name, fact in facts.items() if tables.is_set(fact)}, title=heading
                )
            )
        else:
            print_rows(facts, tables.set_columns(facts), title=heading)


def outcome(
    message: Message | Mapping[str, Any], sentence: str, *next_commands: str, whole: bool = False
) -> None:
    """Prints the result of a command: the sentence and the next commands; all fields with --all, or if `whole`."""
    if not mode.json:
        lead(sentence, *next_commands)
    if mode.json or mode.everything or whole:
        record(message)


def lead(sentence: str, *next_commands: str) -> None:
    """Prints the sentence for people, and below it the commands that an operator may need next."""
    console.print(escape(tables.printable(sentence)), soft_wrap=not is_screen())
    for command in next_commands:
        console.print(f"[dim]Next:[/dim] {escape(tables.printable(command))}", soft_wrap=True)


def overview(sentence: str, *next_commands: str) -> None:
    """Prints the sentence and the commands above a table, nothing without a sentence. A pipe gets the table only: for
    grep, cut and wc.
    """
    if sentence and is_screen():
        lead(sentence, *next_commands)
        console.print()


def facts(message: Message, names: Sequence[str]) -> None:
    """Prints these fields of one thing for people; those without a value are left out."""
    values = plain(message)
    console.print(
        tables.card({name: values[name] for name in names if tables.is_set(values[name])}, title="")
    )


def is_screen() -> bool:
    """Returns whether the output has a width to fit: ids are short there, and rows take several lines."""
    return console.width < PIPED_WIDTH


def short(id: str) -> str:
    """Returns the first characters of an id: enough for a command, which refuses them when two things match."""
    return id[:SHORT_ID] if parse_id(id) else id


def shortened(ids: Iterable[str]) -> dict[str, str]:
    """Returns the short form of each id, longer where two of them would be alike; whole ids in a pipe."""
    given = list(dict.fromkeys(ids))
    if not is_screen():
        return {id: id for id in given}
    length = next(
        length for length in (SHORT_ID, 18, 23, 36) if len({id[:length] for id in given}) == len(given)
    )
    return {id: id[:length] if parse_id(id) else id for id in given}


def print_json(value: Any) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def note(text: str) -> None:
    """Prints a remark for people on stderr; nothing with --json."""
    if "--json" not in sys.argv:
        _errors.print(text, soft_wrap=True)


def end_without(away: Sequence[str], reason: str, missing: str) -> None:
    """Names the services that did not answer, and ends the command with exit code 1 if there is one."""
    for service in away:
        refusal(reason, f"{service} did not answer, so {missing} missing here", {})
    if away:
        raise typer.Exit(1)


def require_yes(*, yes: bool) -> None:
    """Refuses --json without --yes for a command that asks a question."""
    if mode.json and not yes:
        raise typer.BadParameter("with --json there is no question: add --yes", param_hint="--yes")


def refusal(reason: str, message: str, metadata: Mapping[str, str]) -> None:
    """Prints a refusal on stderr, for people or as JSON: the code first."""
    if "--json" in sys.argv:
        error = {"code": reason, "message": message, "details": dict(metadata)}
        sys.stderr.write(json.dumps({"error": error}, ensure_ascii=False) + "\n")
        return
    _errors.print(
        f"[bold red]{escape(reason)}[/bold red]  {escape(tables.printable(message))}", soft_wrap=True
    )
    for name, value in metadata.items():
        _errors.print(f"  [dim]{escape(name)}: {escape(tables.printable(value))}[/dim]", soft_wrap=True)


# -- messages to values (in the stubs a field's descriptor has two classes, the pure and the compiled one: hence Any)


def _field(message: Message, field: Any) -> Any:
    if field.is_repeated:
        return _repeated(message, field)
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(getattr(message, field.name), field)


def _repeated(message: Message, field: Any) -> Any:
    value = getattr(message, field.name)
    kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        return dict(value)
    return [_value(each, field) for each in value]


def _value(value: Any, field: Any) -> Any:
    if isinstance(value, Timestamp):
        return value.ToDatetime(tzinfo=UTC).isoformat()
    if isinstance(value, Message):
        return plain(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if field.enum_type is not None:
        return enum_word(field.enum_type, value)
    return value


def enum_word(kind: EnumDescriptor, number: int) -> str:
    """Returns "pending" for INVOICE_STATUS_PENDING: the word of the API."""
    known = kind.values_by_number.get(number)
    if known is None:
        return str(number)
    prefix = kind.values_by_number[0].name.removesuffix("UNSPECIFIED")
    return known.name.removeprefix(prefix).lower()


def enum_number(kind: EnumDescriptor, word: str | None) -> int:
    """Returns the number of a word of the API, 0 for None. Raises typer.BadParameter with the known words."""
    if word is None:
        return 0
    words = {enum_word(kind, number): number for number in kind.values_by_number if number}
    if word.lower() not in words:
        raise typer.BadParameter(f"{word!r} is none of {', '.join(words)}")
    return words[word.lower()]


def age(moment: str | None) -> str:
    """Returns "3min" for an ISO time three minutes ago."""
    if moment is None:
        return "-"
    seconds = int((SystemClock().now() - datetime.fromisoformat(moment)).total_seconds())
    for size, unit in _AGES:
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{max(seconds, 0)}s"


# -- tables


def print_rows(
    rows: Sequence[Mapping[str, Any]], headings: Columns, *, title: str = "", stacks: Stacks = ()
) -> None:
    """Prints a line for each row if the terminal is wide enough, else its fields in `stacks`, else a card for each.
    No value is cut.
    """
    grid = tables.grid(rows, headings, title=title)
    natural = Measurement.get(console, console.options.update(width=PIPED_WIDTH), grid)
    if natural.maximum <= console.width:
        console.print(grid)
        return
    if stacks:
        console.print(tables.stacked(rows, headings, stacks))
        return
    for number, row in enumerate(rows, 1):
        if number > 1:
            console.print()
        values = {heading: tables.inside(row, path) for path, heading in headings.items()}
        console.print(tables.card(values, title=f"{title} {number}" if title else ""))
