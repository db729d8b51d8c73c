"""`fiatgate parked …`: events that failed too often, or that are not proven."""

from typing import Annotated, Any, NoReturn

import typer

from cli import connection, output
from cli.output import Json
from fiatgate.parked.v1 import parked_pb2 as pb
from kit.rpc.values import LIST_MOST_ROWS, LIST_ROWS

app = typer.Typer(help="Events that failed too often, or that are not proven.", no_args_is_help=True)

CONSUMING = ("withdrawals", "webhooks")
COLUMNS = (
    "service",
    "event_id",
    "claimed_event_id",
    "invoice_id",
    "subject",
    "attempts",
    "error",
    "parked_at",
)
STACKS = (("service", "attempts"), ("event_id", "invoice_id"), ("subject", "parked_at"), ("error",))


@app.command("list", epilog="Example: fiatgate parked list")
def list_all(
    *,
    limit: Annotated[
        int, typer.Option(min=1, max=LIST_MOST_ROWS, help="Largest number of events of each service.")
    ] = LIST_ROWS,
    as_json: Json = False,
) -> None:
    """List events that a service could not handle, with the last failure, those parked longest ago first."""
    rows: list[dict[str, Any]] = []
    for service in CONSUMING:
        answer = connection.parked(service).ListParked(pb.ListParkedRequest(limit=limit))
        rows += [{"service": service, **output.plain(event)} for event in answer.events]
        if answer.total > len(answer.events):
            output.note(f"[dim]{service}: {len(answer.events)} of {answer.total}[/dim]")
    output.rows(rows, COLUMNS, as_json=as_json, empty="Nothing is parked", stacks=STACKS)


@app.command("retry", epilog="Example: fiatgate parked retry --all")
def retry(
    event_id: Annotated[str | None, typer.Argument(metavar="EVENT_ID", show_default=False)] = None,
    *,
    everything: Annotated[
        bool, typer.Option("--all", help="Handle every parked event of every service.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Handle parked events again, once, after the cause is removed. Safe to repeat: each takes effect once.

    Exit code 1 when one of them failed again and stays parked, or when no event has this id.
    """
    if everything == (event_id is not None):
        raise typer.BadParameter("give an EVENT_ID, or --all")
    counts = {service: _retry(service, event_id) for service in CONSUMING}
    if event_id is not None and not any(count["retried"] for count in counts.values()):
        _refuse_unknown(event_id)
    rows = [{"service": service, **count} for service, count in counts.items()]
    output.rows(rows, ("service", "retried", "took_effect"), as_json=as_json, empty="")
    if any(count["took_effect"] < count["retried"] for count in counts.values()):
        output.note("The events that still fail, with the reason: fiatgate parked list")
        raise typer.Exit(1)


@app.command("discard", epilog="Example: fiatgate parked discard 3f0c7b1e-6d7e-5c0b-9a53-0d7f4e6f2a11")
def discard(
    event_id: Annotated[str, typer.Argument(metavar="EVENT_ID", show_default=False)],
    *,
    even_if_true: Annotated[
        bool,
        typer.Option(
            "--even-if-true", help="Also delete an event with an unknown key or without a signature."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Delete a parked event whose signature is wrong. With --even-if-true also one without a known signature.

    One with an unknown key or without a signature may be true, so it is refused without --even-if-true. One with a
    valid signature is always refused. `fiatgate verify --repair` announces a true event again that was deleted.
    """
    request = pb.DiscardParkedRequest(event_id=event_id, even_if_true=even_if_true)
    rows = [
        {"service": service, "discarded": connection.parked(service).DiscardParked(request).discarded}
        for service in CONSUMING
    ]
    if not any(row["discarded"] for row in rows):
        _refuse_unknown(event_id)
    output.rows(rows, ("service", "discarded"), as_json=as_json, empty="")


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
