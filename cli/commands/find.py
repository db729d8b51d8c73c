"""`fiatgate find TEXT`: one search over all services."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer
from rich.markup import escape

from cli import connection, names, output
from cli.output import Json
from fiatgate.find.v1 import find_pb2 as pb

EXAMPLE: Final = "fiatgate find 50.90"

SERVICES: Final = ("invoices", "merchants", "withdrawals", "webhooks", "accounts", "catalog")
ROWS: Final = 10
MOST_ROWS: Final = 100
COLUMNS: Final = {
    "shown": "id",
    "kind": "kind",
    "field": "found in",
    "value": "text",
    "status": "status",
    "age": "age",
    "amount": "amount",
    "merchant": "merchant",
    "external_id": "order",
}
STACKS: Final = (
    ("shown", "kind"),
    ("field", "status"),
    ("value", "amount"),
    ("age",),
    ("merchant", "external_id"),
)
_NEXT: Final = {
    "deal": "fiatgate deals show {id}",
    "invoice": "fiatgate invoices show {id}",
    "merchant": "fiatgate merchants show {id}",
    "withdrawal": "fiatgate withdrawals show {id}",
    "webhook": "fiatgate webhooks show {id}",
    "case": "fiatgate cases show {id}",
    "requisite": "fiatgate requisites list --method {method_code}",
    "key": "fiatgate keys list {merchant_id}",
    "person": "fiatgate people show {id}",
    "approval": "fiatgate approvals show {id}",
}


def find(
    text: Annotated[str, typer.Argument(metavar="TEXT", help='For example 50.90, order-17 or "7K3M 9QTX".')],
    *,
    limit: Annotated[
        int, typer.Option(min=1, max=MOST_ROWS, help="The most things of each kind and field.")
    ] = ROWS,
    as_json: Json = False,
) -> None:
    """Find anything by what you have: an id or its beginning, an order, customer, amount, account, sender's name,
    payment reference, transaction, merchant's name or owner, a person's e-mail address, a case's or event's number.

    Exit code 1 when a service did not answer.
    """
    found, cut, silent = _search(text, limit)
    rows = [output.plain(each) for each in found]
    if as_json:
        output.print_json(rows)
    else:
        _print(text, rows)
    for each in cut:
        output.note(f"[dim]There are more than {limit} by {escape(each)}: --limit {MOST_ROWS}[/dim]")
    for service in silent:
        output.refusal("NOT_SEARCHED", f"{service} did not answer, so its things are missing here", {})
    if silent:
        raise typer.Exit(1)


def _search(text: str, limit: int) -> tuple[Sequence[pb.Found], Sequence[str], Sequence[str]]:
    """Returns the things that were found, each once with the first of its fields that has the text; the kinds of which
    there are more; and the services that did not answer. Raises the reason when none did.
    """
    request = pb.FindRequest(text=text, limit=limit)
    answers, away = connection.answers(SERVICES, lambda service: connection.find(service).Find(request))
    found: dict[tuple[str, str], pb.Found] = {}
    for each in (each for answer in answers for each in answer.found):
        found.setdefault((each.kind, each.id), each)
    return list(found.values()), [each for answer in answers for each in answer.cut], away


def _print(text: str, rows: Sequence[dict[str, Any]]) -> None:
    if not rows:
        output.lead(f"Nothing has {text}.")
        return
    counts = Counter(row["kind"] for row in rows)
    kinds = ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in counts.items())
    shown = output.shortened(row["id"] for row in rows)
    output.lead(f"Found {kinds} with {text}.", *_next_commands(rows, shown))
    output.console.print()
    merchants = names.of_merchants(
        row["facts"]["merchant_id"] for row in rows if "merchant_id" in row["facts"]
    )
    for_people = [_for_people(row, shown, merchants) for row in rows]
    output.rows(for_people, COLUMNS, as_json=False, empty="", stacks=STACKS)


def _next_commands(rows: Sequence[dict[str, Any]], shown: dict[str, str]) -> list[str]:
    """Returns a command for the first thing of each kind."""
    firsts = {row["kind"]: row for row in reversed(rows)}
    return [
        _NEXT[kind].format(**row["facts"] | {"id": shown[row["id"]]})
        for kind, row in reversed(firsts.items())
        if kind in _NEXT
    ]


def _for_people(row: dict[str, Any], shown: dict[str, str], merchants: dict[str, str]) -> dict[str, Any]:
    facts = row["facts"]
    return row | {
        "shown": shown[row["id"]],
        "age": output.age(row["created_at"]),
        "value": shown.get(row["value"], row["value"]),
        "amount": f"{facts['amount']} {facts['currency_code']}" if "amount" in facts else None,
        "merchant": merchants.get(facts.get("merchant_id", "")),
        "external_id": facts.get("external_id"),
    }
