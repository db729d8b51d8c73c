"""`fiatgate parked …`: events that failed too often and were set aside."""

from typing import Annotated, Any

import typer

from cli import connection, output
from cli.output import Json
from fiatgate.parked.v1 import parked_pb2 as pb

NAME = "parked"
app = typer.Typer(help="Events that failed too often and were set aside.", no_args_is_help=True)

CONSUMING = ("withdrawals", "webhooks")
COLUMNS = ("service", "event_id", "claimed_event_id", "subject", "attempts", "error", "parked_at")


@app.command("list", epilog="Example: fiatgate parked list")
def list_all(
    *,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Of each service.")] = 100,
    as_json: Json = False,
) -> None:
    """Events that a service could not handle, with the last failure; those parked longest ago first."""
    rows: list[dict[str, Any]] = []
    for service in CONSUMING:
        answer = connection.parked(service).ListParked(pb.ListParkedRequest(limit=limit))
        rows += [{"service": service, **output.plain(event)} for event in answer.events]
        if answer.total > len(answer.events):
            output.note(f"[dim]{service}: {len(answer.events)} of {answer.total}[/dim]")
    output.rows(rows, COLUMNS, as_json=as_json, empty="Nothing is parked")


@app.command("retry", epilog="Example: fiatgate parked retry --all")
def retry(
    event_id: Annotated[str | None, typer.Argument(metavar="EVENT_ID", show_default=False)] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Every parked event of every service.")] = False,
    as_json: Json = False,
) -> None:
    """Handle parked events again, once, after what made them fail is mended. Safe to repeat: each takes effect once.

    Exit code 1 when one of them failed again and stays parked.
    """
    if everything == (event_id is not None):
        raise typer.BadParameter("give an EVENT_ID, or --all")
    counts = {service: _retry(service, event_id) for service in CONSUMING}
    rows = [{"service": service, **count} for service, count in counts.items()]
    output.rows(rows, ("service", "retried", "mended"), as_json=as_json, empty="")
    if any(count["mended"] < count["retried"] for count in counts.values()):
        output.note("What still fails, and why: fiatgate parked list")
        raise typer.Exit(1)


@app.command("discard", epilog="Example: fiatgate parked discard 3f0c7b1e-6d7e-5c0b-9a53-0d7f4e6f2a11")
def discard(
    event_id: Annotated[str, typer.Argument(metavar="EVENT_ID", show_default=False)],
    *,
    as_json: Json = False,
) -> None:
    """Delete a parked event that carries no valid signature, a forgery. A true event is refused."""
    request = pb.DiscardParkedRequest(event_id=event_id)
    rows = [
        {"service": service, "discarded": connection.parked(service).DiscardParked(request).discarded}
        for service in CONSUMING
    ]
    output.rows(rows, ("service", "discarded"), as_json=as_json, empty="")


def _retry(service: str, event_id: str | None) -> dict[str, int]:
    stub, request = connection.parked(service), pb.RetryParkedRequest(event_id=event_id)
    retried = mended = 0
    while True:
        answer = stub.RetryParked(request)
        retried, mended = retried + answer.retried, mended + answer.mended
        if not answer.more:
            return {"retried": retried, "mended": mended}
        request.after_event_id = answer.last_event_id
