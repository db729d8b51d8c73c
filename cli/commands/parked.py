"""`fiatgate parked …`: events that failed too often, or that are not proven."""

from typing import Annotated, Any, Final, NoReturn

import typer

from cli import connection, output
from cli.command import argument, command, group, option
from cli.listing import Table
from fiatgate.parked.v1 import parked_pb2 as pb
from kit.rpc.values import LIST_MOST_ROWS, LIST_ROWS

app = group("parked", "Failed events: those that failed too often, or that are not proven.")

CONSUMING: Final = ("withdrawals", "webhooks")
TABLE: Final = Table(
    columns="service | event_id | claimed_event_id | invoice_id | subject | attempts | error | parked_at",
    stacks="service attempts | event_id invoice_id | subject parked_at | error",
    empty="No event has failed",
)
RETRIED: Final = Table(columns="service | retried | took_effect", empty="")
DISCARDED: Final = Table(columns="service | discarded", empty="")
_LIMIT: Final = "Largest number of events of each service."
_EVEN_IF_TRUE: Final = "Also delete an event with an unknown key or without a signature."


@command(
    *(app, "list", "", pb.ListParkedRequest),
    option("limit", None, _LIMIT, default=LIST_ROWS, min=1, max=LIST_MOST_ROWS),
)
def list_all(request: pb.ListParkedRequest) -> None:
    """List failed events with the last failure, those set aside longest ago first."""
    rows: list[dict[str, Any]] = []
    for service in CONSUMING:
        answer = connection.parked(service).ListParked(request)
        rows += [{"service": service, **output.plain(event)} for event in answer.events]
        if answer.total > len(answer.events):
            output.note(f"[dim]{service}: {len(answer.events)} of {answer.total}[/dim]")
    TABLE.show(rows)


@command(app, "retry", "--all")
def retry(
    event_id: Annotated[str | None, typer.Argument(metavar="EVENT_ID", show_default=False)] = None,
    *,
    every: Annotated[
        bool, typer.Option("--all", help="Process every failed event of every service.")
    ] = False,
) -> None:
    """Process failed events again, once, after the cause is removed. Safe to repeat: each takes effect once.

    Exit code 1 when one of them failed again, or when no event has this id.
    """
    if every == (event_id is not None):
        raise typer.BadParameter("give an EVENT_ID, or --all")
    rows: list[dict[str, Any]] = [{"service": each} | _retry(each, event_id) for each in CONSUMING]
    if event_id is not None and not any(row["retried"] for row in rows):
        _refuse_unknown(event_id)
    RETRIED.show(rows)
    if any(row["took_effect"] < row["retried"] for row in rows):
        output.note("The events that still fail, with the reason: fiatgate parked list")
        raise typer.Exit(1)


@command(
    *(app, "discard", "3f0c7b1e-6d7e-5c0b-9a53-0d7f4e6f2a11", pb.DiscardParkedRequest),
    argument("event_id", "EVENT_ID", show_default=False),
    option("even_if_true", None, _EVEN_IF_TRUE, default=False),
)
def discard(request: pb.DiscardParkedRequest) -> None:
    """Delete a failed event whose signature is wrong. With --even-if-true also one without a known signature.

    One with an unknown key or without a signature may be true, so it is refused without --even-if-true. One with a
    valid signature is always refused. `fiatgate verify --repair` announces a true event again that was deleted.
    """
    rows = [
        {"service": service, "discarded": connection.parked(service).DiscardParked(request).discarded}
        for service in CONSUMING
    ]
    if not any(row["discarded"] for row in rows):
        _refuse_unknown(request.event_id)
    DISCARDED.show(rows)


def _refuse_unknown(event_id: str) -> NoReturn:
    output.refusal("NOT_PARKED", "No such parked event", {"event_id": event_id})
    raise typer.Exit(1)


def _retry(service: str, event_id: str | None) -> dict[str, int]:
    stub, request = connection.parked(service), pb.RetryParkedRequest(event_id=event_id)
    retried = took_effect = 0
    while True:
        answer = stub.RetryParked(request)
        retried, took_effect = retried + answer.retried, took_effect + answer.mended
        if not answer.more:
            return {"retried": retried, "took_effect": took_effect}
        request.after_event_id = answer.last_event_id
