"""Tables for people, and the texts of values in them. `cli.output` chooses a table and prints it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich import box
from rich.markup import escape
from rich.table import Table

from kit.base.money import amount_text, percent_of

Stacks = Sequence[Sequence[str]]
"""The fields that share a column where the terminal is too narrow for a line of all: the first above the others."""

_PROSE: Final = frozenset({"note", "outcome", "purpose", "response_body", "error_message"})
"""Fields whose line breaks are shown, in a card only: there the lines stand beside the label."""

_COLOURS = {
    **dict.fromkeys(("success", "paid", "sent", "delivered"), "green"),
    "completed": "green",
    "active": "green",
    "yes": "green",
    "pending": "yellow",
    "appeal": "magenta",
    "fail": "red",
    "failed": "red",
    "dead": "red",
    "banned": "red",
    "no": "dim",
    "canceled": "dim",
    "cancelled": "dim",
    "expired": "dim",
    "inactive": "dim",
}


def grid(rows: Sequence[Mapping[str, Any]], headings: Mapping[str, str], *, title: str) -> Table:
    table = _table(title, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for heading in headings.values():
        table.add_column(heading, no_wrap=True)
    for row in map(_for_people, rows):
        table.add_row(*(_coloured(_text(inside(row, path))) for path in headings))
    return table


def stacked(rows: Sequence[Mapping[str, Any]], headings: Mapping[str, str], stacks: Stacks) -> Table:
    """Returns a table with a column for each stack; the lines below the first one of a row are dim."""
    table = _table("", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for number, stack in enumerate(stacks):
        heading = "\n".join(headings[path] for path in stack)
        # The first column has ids, which are copied: they are never broken.
        table.add_column(heading, no_wrap=not number, overflow="fold")
    for row in map(_for_people, rows):
        table.add_row(*("\n".join(_stack(row, stack)) for stack in stacks))
    return table


def _stack(row: Mapping[str, Any], paths: Sequence[str]) -> Iterator[str]:
    first, *others = (_text(inside(row, path)) for path in paths)
    yield _coloured(first)
    yield from (f"[dim]{escape(other)}[/dim]" for other in others)


def card(values: Mapping[str, Any], *, title: str) -> Table:
    table = _table(title, box=box.SIMPLE, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _for_people(values).items():
        for path, text in _lines(name, value):
            table.add_row(label(path), _coloured(text))
    return table


def _table(title: str, **options: Any) -> Table:
    # Without edges: empty lines and columns around the table would disturb grep, head and cut.
    return Table(title=title or None, title_justify="left", title_style="bold", show_edge=False, **options)


def label(name: str) -> str:
    return name.replace("_", " ").replace(".", " ")


# -- values to text


def is_list_of_records(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], Mapping)


def is_set(value: Any) -> bool:
    return value not in (None, "", [], {})


def set_columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Returns the fields that have a value in one of the rows, with their headings."""
    return {column: label(column) for column in rows[0] if any(is_set(row[column]) for row in rows)}


def inside(row: Mapping[str, Any], path: str) -> Any:
    value: Any = row
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


_AMOUNTS: Final = frozenset(
    {
        *("amount", "amount_fiat", "amount_to_send", "amount_to_receive", "invoice_amount", "final_amount"),
        *(
            "original_amount",
            "adjusted_amount",
            "min_amount",
            "max_amount",
            "min_sum",
            "max_sum",
            "network_fee",
        ),
        *("turnover", "commission", "rate", "source_rate", "conversion_rate", "available", "reserved"),
        *("credited", "withdrawn", "merchant_usdt", "turnover_usdt", "commission_usdt", "credited_usdt"),
        # the day's end of an account; the changes of a balance
        *("opening", "closing", "matched", "proposed", "unmatched", "ignored", "refunds", "debits"),
        *("received", "by_hand", "reversed", "refunded", "change", "owed", "difference"),
    }
)
_FRACTIONS: Final = frozenset({"markup", "client_share", "commission", "category_commission"})


def _for_people(values: Mapping[str, Any], of: str = "") -> dict[str, Any]:
    """Returns the fields with amounts in the form of their currency, and fractions in per cent."""
    currency = values.get("currency_code") or (values.get("code") if "markup" in values else "") or of
    fractions = frozenset() if "turnover" in values else _FRACTIONS

    def field(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return _for_people(value, currency)
        if not isinstance(value, str) or "%" in value:
            return value
        if name in fractions:
            return f"{percent_of(value)} %" if value else value
        own = "USDT" if name.endswith("_usdt") else "" if name.endswith("rate") else currency
        return amount_text(value, own) if name in _AMOUNTS else value

    return {name: field(name, value) for name, value in values.items()}


def _lines(name: str, value: Any) -> list[tuple[str, str]]:
    """Returns label and text of a value; for a mapping one pair for each of its values."""
    if isinstance(value, Mapping) and value:
        return [line for key, each in value.items() for line in _lines(f"{name}.{key}", each)]
    if isinstance(value, str) and name.rpartition(".")[2] in _PROSE:
        return [(name, "\n".join(map(_text, value.splitlines())) or "-")]
    return [(name, _text(value))]


_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)[.\d]*\+00:00").fullmatch


def _text(value: Any) -> str:
    if not is_set(value):
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_text(each)}" for name, each in value.items())
    # Times without fractions of a second, and still marked as UTC.
    moment = _MOMENT(str(value))
    return f"{moment[1]} {moment[2]}Z" if moment else printable(str(value))


def printable(text: str) -> str:
    """Returns the text as one line, with control characters, line breaks and direction marks shown as `\\x1b`: a
    terminal would obey them, and a line break would look like one more row. Strangers wrote some of these texts.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def _coloured(text: str) -> str:
    colour = _COLOURS.get(text)
    return f"[{colour}]{escape(text)}[/{colour}]" if colour else escape(text)
