"""`fiatgate find TEXT`: one search over all services."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import typer
from rich.markup import escape

from cli import connection, output
from cli.command import argument, option, shaped
from cli.listing import Row, Table
from console.words.states import words_of
from fiatgate.find.v1 import find_pb2 as pb
from kit.base.money import money_text

EXAMPLE: Final = "fiatgate find 50.90"

SERVICES: Final = ("invoices", "identity", "withdrawals", "webhooks", "catalog")
ROWS: Final = 10
MOST_ROWS: Final = 100
TABLE: Final = Table(
    columns="id | kind | field: found in | value: text | status | age | amount | merchant | external_id: order",
    stacks="id kind | field status | value amount | age | merchant external_id",
    empty="",
)
_NEXT: Final = {
    "deal": "fiatgate deals show {id}",
    "invoice": "fiatgate invoices show {id}",
    "merchant": "fiatgate merchants show {id}",
    "withdrawal": "fiatgate withdrawals show {id}",
    "refund": "fiatgate refunds show {id}",
    "webhook": "fiatgate webhooks show {id}",
    "case": "fiatgate cases show {id}",
    "requisite": "fiatgate requisites list --method {method_code}",
    "key": "fiatgate keys list {merchant_id}",
    "person": "fiatgate people show {id}",
    "approval": "fiatgate approvals show {id}",
}


@shaped(
    pb.FindRequest,
    argument("text", "TEXT", 'For example 50.90, order-17 or "7K3M 9QTX".'),
    option("limit", None, "The most things of each kind and field.", default=ROWS, min=1, max=MOST_ROWS),
)
def find(request: pb.FindRequest) -> None:
    """Find anything by what you have: an id or its beginning, an order, customer, amount, account, sender's name,
    payment reference, transaction, merchant's name or owner, a person's e-mail address, a case's or event's number.

    Exit code 1 when nothing is found, or a service did not answer.
    """
    answers, away = connection.answers(SERVICES, lambda service: connection.find(service).Find(request))
    found: dict[tuple[str, str], Row] = {}
    for each in (each for answer in answers for each in answer.found):
        found.setdefault((each.kind, each.id), output.plain(each))
    rows = list(found.values())
    if output.mode.json:
        output.print_json(rows)
    else:
        _print(request.text, rows)
    for cut in (cut for answer in answers for cut in answer.cut):
        output.note(f"[dim]There are more than {request.limit} by {escape(cut)}: --limit {MOST_ROWS}[/dim]")
    output.end_without(away, "NOT_SEARCHED", "its things are")
    if not rows:
        raise typer.Exit(1)


def _print(text: str, rows: Sequence[Row]) -> None:
    if not rows:
        output.lead(f"Nothing has {text}.")
        return
    counts = Counter(row["kind"] for row in rows)
    kinds = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in counts.items())
    shown = output.shortened(row["id"] for row in rows)
    output.lead(f"Found {kinds} with {text}.", *_next_commands(rows, shown))
    output.console.print()
    TABLE.show([row | _for_people(row, shown) for row in rows])


def _for_people(row: Row, shown: Mapping[str, str]) -> Row:
    facts = row["facts"]
    return {
        "id": shown[row["id"]],
        "status": words_of(row["status"], row["kind"]),
        "value": shown.get(row["value"], row["value"]),
        "merchant_id": facts.get("merchant_id"),
        "amount": money_text(facts["amount"], facts["currency_code"]) if "amount" in facts else None,
        "external_id": facts.get("external_id"),
    }


def _next_commands(rows: Sequence[Row], shown: Mapping[str, str]) -> list[str]:
    """Returns a command for the first thing of each kind."""
    firsts = {row["kind"]: row for row in reversed(rows)}
    return [
        _NEXT[kind].format(**row["facts"] | {"id": shown[row["id"]]})
        for kind, row in reversed(firsts.items())
        if kind in _NEXT
    ]
