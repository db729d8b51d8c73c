"""`fiatgate webhooks …`"""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated

import typer

from cli import connection, ids, names, output, paging, several
from cli.moments import Since, Until
from cli.output import INT32_MOST, INT64_MOST, Everything, Json
from fiatgate.webhooks.v1 import webhooks_pb2 as pb
from kit.base.proto import timestamp_from
from kit.rpc.limits import OUTWARD_CALL_SECONDS

RETRYING = "retrying"
CALLS_MOST = 50
"""Calls of one search by merchant or type. Each reads at most 20,000 events."""
app = typer.Typer(help="Webhook events and their attempts.", no_args_is_help=True)


COLUMNS = {
    "event_id": "event",
    "status": "status",
    "age": "age",
    "event_type": "type",
    "tried": "attempts",
    "next_retry_at": "next attempt",
    "invoice_id": "invoice",
    "merchant": "merchant",
    "callback_url": "address",
}
STACKS = (
    ("event_id", "age"),
    ("status", "tried"),
    ("event_type", "invoice_id"),
    ("merchant", "next_retry_at"),
    ("callback_url",),
)


@app.command("list", epilog="Example: fiatgate webhooks list --status dead")
def list_all(
    invoice_id: Annotated[
        str,
        typer.Argument(
            metavar="INVOICE_ID",
            parser=ids.parser_of("invoice"),
            help="Only the events of this invoice.",
            show_default=False,
        ),
    ] = "",
    *,
    status: Annotated[
        str | None,
        typer.Option(metavar="S", help="pending, retrying (pending after a failed attempt), success, dead."),
    ] = None,
    merchant: ids.OfMerchant = "",
    event_type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="As invoice.success, or success alone.")
    ] = "",
    since: Since = None,
    until: Until = None,
    after: Annotated[
        int, typer.Option("--after", metavar="EVENT_ID", min=0, max=INT64_MOST, help="Begin after this one.")
    ] = 0,
    limit: paging.Limit = paging.ROWS,
    as_json: Json = False,
) -> None:
    """List events, newest first: of one invoice, or of all."""
    if invoice_id:
        if status or merchant or event_type or since or until or after:
            raise typer.BadParameter(
                "give an invoice, or options that choose events", param_hint="INVOICE_ID"
            )
        of_invoice = pb.ListInvoiceEventsRequest(invoice_id=invoice_id)
        found: Sequence[pb.WebhookEvent] = connection.webhooks().ListInvoiceEvents(of_invoice).events
    else:
        request = _request(status, since, until, after, limit)
        request.merchant_id = merchant
        request.event_type = event_type if "." in event_type or not event_type else f"invoice.{event_type}"
        found = _found(request)
    paging.print_page(
        found, limit, table=_print_page, last_id=lambda last: str(last.event_id), as_json=as_json
    )


def _found(request: pb.ListEventsRequest) -> Sequence[pb.WebhookEvent]:
    """Returns the events that match. A search by merchant or type takes several calls."""
    found: list[pb.WebhookEvent] = []
    for _ in range(CALLS_MOST):
        answer = connection.webhooks().ListEvents(request)
        found += answer.events
        request.after_event_id = answer.continue_after_event_id
        if not request.after_event_id or len(found) >= request.limit:
            return found[: request.limit]
    output.note(f"[dim]Older events were not searched. Go on with --after {request.after_event_id}[/dim]")
    return found


def _request(
    status: str | None, since: datetime | None, until: datetime | None, after: int, limit: int
) -> pb.ListEventsRequest:
    request = pb.ListEventsRequest(
        created_from=timestamp_from(since),
        created_before=timestamp_from(until),
        after_event_id=after,
        limit=paging.asked(limit),
    )
    if status == RETRYING:
        status, request.attempted = "pending", True
    request.status = output.enum_number(pb.EventStatus.DESCRIPTOR, status)  # type: ignore[assignment]  # see deals
    return request


def _print_page(page: Sequence[pb.WebhookEvent], *, more: bool) -> None:
    merchants = names.of_merchants(event.merchant_id for event in page)
    short_ids = output.shortened(event.invoice_id for event in page)
    rows = [
        row
        | {
            "age": output.age(row["created_at"]),
            "tried": row["auto_attempts"] + row["manual_attempts"],
            "invoice_id": short_ids[row["invoice_id"]],
            "merchant": merchants[row["merchant_id"]],
        }
        for row in map(output.plain, page)
    ]
    output.overview(
        output.counted("event", page, more=more),
        "fiatgate webhooks show EVENT",
        "fiatgate webhooks resend INVOICE …",
    )
    output.rows(rows, COLUMNS, as_json=False, empty="No such webhooks", stacks=STACKS)


@app.command("show", epilog="Example: fiatgate webhooks show 17")
def show(
    event_id: Annotated[int, typer.Argument(metavar="EVENT_ID", min=1, max=INT64_MOST)],
    *,
    as_json: Json = False,
) -> None:
    """Show an event with its payload and all attempts."""
    answer = connection.webhooks().GetEvent(pb.GetEventRequest(event_id=event_id))
    output.record(answer.event, as_json=as_json)


@app.command("resend", epilog="Example: fiatgate webhooks resend 0197… 0198…")
def resend(invoice_ids: ids.InvoiceIds, *, everything: Everything = False, as_json: Json = False) -> None:
    """Send the invoices' latest events now, like the merchant's own resend: same cooldown, same history.

    Exit code 0 also when a receiver refused one: the attempt was made, and `ok` has its result. Exit code 1 when an
    attempt was not made.
    """
    several.each(
        invoice_ids,
        lambda id: connection.webhooks().ResendLatest(
            pb.ResendLatestRequest(invoice_id=id), timeout=OUTWARD_CALL_SECONDS
        ),
        _result,
        everything=everything,
        as_json=as_json,
    )


def _result(resent: pb.ResendLatestResponse) -> str:
    if resent.not_sent:
        why = f"`fiatgate webhooks show {resent.event_id}` says why"
        return f"Not sent: event {resent.event_id}; {why}."
    answer = f"status {resent.http_status}" if resent.HasField("http_status") else "no answer"
    verb = "Delivered" if resent.ok else "Sent, and not accepted"
    return f"{verb}: event {resent.event_id}, {answer} after {resent.duration_ms} ms."


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
