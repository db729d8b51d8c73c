"""`fiatgate webhooks …`"""

import threading
from collections.abc import Iterator
from typing import Annotated, Final

import typer

from cli import connection, ids, listing, output, several
from cli.command import argument, command, group, option, period
from cli.listing import Table
from console.words.states import words_of
from fiatgate.webhooks.v1 import webhooks_pb2 as pb
from kit.base.clock import monotonic_seconds
from kit.rpc.limits import OUTWARD_CALL_SECONDS
from kit.rpc.values import LIST_MOST_ROWS

RETRYING: Final = "retrying"
CALLS_MOST: Final = 50
"""Calls of one search by merchant or type. Each reads at most 20,000 events."""
app = group("webhooks", "Webhook events and their attempts.")
TABLE: Final = Table(
    columns="event_id: event | status | age | event_type: type | tried: attempts | next_retry_at: next attempt"
    " | invoice_id: invoice | merchant | callback_url: address",
    stacks="event_id age | status tried | event_type invoice_id | merchant next_retry_at | callback_url",
    empty="No such webhooks",
    noun="event",
    ids=("invoice_id",),
)


@command(
    *(app, "list", "--status dead", pb.ListEventsRequest),
    ids.one("invoice", "INVOICE_ID", help="Only the events of this invoice.", default=""),
    "status",
    ids.of_merchant(),
    option("event_type", "TYPE", "As invoice.success, or success alone.", "--type"),
    *period(),
    option("after_event_id", "EVENT_ID", "Begin after this one.", "--after", default=0),
)
def list_all(
    request: pb.ListEventsRequest,
    *,
    status: Annotated[
        str | None,
        typer.Option(
            metavar="S", help="pending, retrying (pending after a failed attempt), success (delivered), dead."
        ),
    ] = None,
    limit: listing.Limit = listing.ROWS,
) -> None:
    """List events, newest first: of one invoice, or of all."""
    if request.invoice_id and (status or request != pb.ListEventsRequest(invoice_id=request.invoice_id)):
        raise typer.BadParameter("give an invoice, or options that choose events", param_hint="INVOICE_ID")
    if request.event_type and "." not in request.event_type:
        request.event_type = f"invoice.{request.event_type}"
    if status == RETRYING:
        status, request.attempted = "pending", True
    request.status = output.enum_number(pb.EventStatus.DESCRIPTOR, status)  # type: ignore[assignment]  # a number of it
    next_commands = ("fiatgate webhooks show EVENT", "fiatgate webhooks resend INVOICE …")
    listing.show_page(
        *(TABLE, request, _found, "events", "event_id", *next_commands),
        limit=limit,
        for_people=lambda row: {
            "tried": row["auto_attempts"] + row["manual_attempts"],
            "status": words_of(row["status"], "webhook"),
        },
    )


def _found(
    request: pb.ListEventsRequest,
) -> pb.ListEventsResponse | pb.ListInvoiceEventsResponse:
    """Returns the events that match. A search by merchant or type takes several calls."""
    if request.invoice_id:
        of_invoice = pb.ListInvoiceEventsRequest(invoice_id=request.invoice_id)
        return connection.webhooks().ListInvoiceEvents(of_invoice)
    found = pb.ListEventsResponse()
    for _ in range(CALLS_MOST):
        answer = connection.webhooks().ListEvents(request)
        found.events.extend(answer.events)
        request.after_event_id = answer.continue_after_event_id
        if not request.after_event_id or len(found.events) >= request.limit:
            del found.events[request.limit :]
            return found
    output.note(f"[dim]Older events were not searched. Go on with --after {request.after_event_id}[/dim]")
    return found


@command(app, "show", "17", pb.GetEventRequest, argument("event_id", "EVENT_ID", min=1))
def show(request: pb.GetEventRequest) -> None:
    """Show an event with its payload and all attempts."""
    output.record(connection.webhooks().GetEvent(request).event)


@command(app, "resend", "0197… 0198…", modes="all")
def resend(invoice_ids: ids.InvoiceIds) -> None:
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
    )


@command(
    *(app, "resend-dead", "--since 2026-11-22T10:00", pb.ListEventsRequest),
    ids.of_merchant(),
    *period(),
    modes="all",
)
def resend_dead(
    request: pb.ListEventsRequest,
    *,
    per_second: Annotated[
        int, typer.Option(metavar="N", min=1, max=20, help="The most requests in a second.")
    ] = 2,
) -> None:
    """Send all events again that were given up, of the time when they were made, the newest first. Each is sent as by
    `resend`, with an act of its own; exit code 1 when an attempt was not made.
    """
    if not request.HasField("created_from"):
        raise typer.BadParameter("name the time when they were made", param_hint="--since")
    request.status = pb.EVENT_STATUS_DEAD
    pages = listing.pages(request, _found, "events", "event_id", size=LIST_MOST_ROWS)
    found = [row["invoice_id"] for page in pages for row in page]
    turns = _turns(per_second)

    def resend_one(id: str) -> pb.ResendLatestResponse:
        next(turns)
        call = pb.ResendLatestRequest(invoice_id=id)
        return connection.webhooks().ResendLatest(call, timeout=OUTWARD_CALL_SECONDS)

    if found or output.mode.json:
        several.each(found, resend_one, _result)
    else:
        output.lead("No event of this time was given up.")


def _turns(per_second: int) -> Iterator[None]:
    """Yields so often a second, at once for the first time."""
    at, pause = monotonic_seconds(), threading.Event()
    while True:
        pause.wait(max(0.0, at - monotonic_seconds()))
        at = monotonic_seconds() + 1 / per_second
        yield


def _result(resent: pb.ResendLatestResponse) -> str:
    if resent.not_sent:
        why = f"`fiatgate webhooks show {resent.event_id}` says why"
        return f"Not sent: event {resent.event_id}; {why}."
    answer = f"status {resent.http_status}" if resent.HasField("http_status") else "no answer"
    verb = "Delivered" if resent.ok else "Sent, and not accepted"
    return f"{verb}: event {resent.event_id}, {answer} after {resent.duration_ms} ms."


@command(
    *(app, "prune", "--older-than-days 30", pb.PruneAttemptsRequest),
    option("older_than_days", None, "Delete attempts that began longer ago than this.", required=True, min=1),
)
def prune(request: pb.PruneAttemptsRequest) -> None:
    """Delete old attempts of finished events. Events themselves stay, and so do all events that are still to be
    sent.
    """
    deleted, more = 0, True
    while more:
        answer = connection.webhooks().PruneAttempts(request)
        deleted, more = deleted + answer.deleted, answer.more
        request.after_attempt_id = answer.last_attempt_id
    output.record({"deleted": deleted})
