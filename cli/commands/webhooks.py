"""`fiatgate webhooks …`"""

from typing import Annotated

import typer

from cli import connection, output
from cli.output import INT32_MOST, INT64_MOST, Json
from fiatgate.webhooks.v1 import webhooks_pb2 as pb

NAME = "webhooks"
RESEND_SECONDS = 20  # the delivery's own 15, and the work around it
app = typer.Typer(help="Webhook events and their attempts.", no_args_is_help=True)


@app.command("list", epilog="Example: fiatgate webhooks list 0197…")
def list_all(
    invoice_id: Annotated[str, typer.Argument(metavar="INVOICE_ID")], *, as_json: Json = False
) -> None:
    """List the events of an invoice, newest first."""
    answer = connection.webhooks().ListInvoiceEvents(pb.ListInvoiceEventsRequest(invoice_id=invoice_id))
    columns = (
        "event_id",
        "event_type",
        "status",
        "auto_attempts",
        "manual_attempts",
        "next_retry_at",
        "callback_url",
    )
    output.records(answer.events, columns, as_json=as_json, empty="No webhook for this invoice")


@app.command("show", epilog="Example: fiatgate webhooks show 17")
def show(
    event_id: Annotated[int, typer.Argument(metavar="EVENT_ID", min=1, max=INT64_MOST)],
    *,
    as_json: Json = False,
) -> None:
    """Show an event with its payload and all attempts."""
    answer = connection.webhooks().GetEvent(pb.GetEventRequest(event_id=event_id))
    output.record(answer.event, as_json=as_json)


@app.command("resend", epilog="Example: fiatgate webhooks resend 0197…")
def resend(
    invoice_id: Annotated[str, typer.Argument(metavar="INVOICE_ID")], *, as_json: Json = False
) -> None:
    """Send the invoice's latest event now, like the merchant's own resend: same cooldown, same history.

    Exit code 0 also when the receiver refused it: the attempt was made, and `ok` has its result.
    """
    request = pb.ResendLatestRequest(invoice_id=invoice_id)
    output.record(connection.webhooks().ResendLatest(request, timeout=RESEND_SECONDS), as_json=as_json)


@app.command("prune", epilog="Example: fiatgate webhooks prune --older-than-days 30")
def prune(
    *,
    older_than_days: Annotated[
        int, typer.Option(min=1, max=INT32_MOST, help="Delete attempts that began longer ago than this.")
    ],
    as_json: Json = False,
) -> None:
    """Delete old attempts of finished events. Events themselves stay, and so do all events that are still to be
    sent.
    """
    deleted, request = 0, pb.PruneAttemptsRequest(older_than_days=older_than_days)
    while True:
        answer = connection.webhooks().PruneAttempts(request)
        deleted += answer.deleted
        if not answer.more:
            break
        request.after_attempt_id = answer.last_attempt_id
    output.record({"deleted": deleted}, as_json=as_json)
