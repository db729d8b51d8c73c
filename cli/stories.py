"""The timeline of an invoice, from the three services that know of it, in the words of the page."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from rich.markup import escape

from cli import connection, output, tables
from console.words.bank import PaidBy
from console.words.moments import Moment
from console.words.timeline import SERVICES, timeline
from fiatgate.bank.v1 import bank_pb2
from fiatgate.invoices.v1 import invoices_pb2, lines_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import corrections_pb2, withdrawals_pb2
from kit.rpc.errors import Refused


@dataclass(frozen=True)
class Story:
    """An invoice, its moments, and the services that did not answer."""

    invoice: invoices_pb2.Invoice
    moments: Sequence[Moment]
    away: Sequence[str]


def of_invoice(invoice_id: str) -> Story:
    """Raises INVOICE_NOT_FOUND, and the reason when invoices does not answer."""
    answers, away = connection.answers(SERVICES, lambda service: _CALLS[service](invoice_id))
    found = dict(zip((each for each in SERVICES if each not in away), answers, strict=True))
    story = found.get("invoices") or _story(invoice_id)  # which raises why it does not answer
    transfers, corrections = found.get("withdrawals", ((), None))
    paid_by, silent = _paid_by(story)
    moments = timeline(story, transfers, found.get("webhooks"), corrections=corrections, paid_by=paid_by)
    return Story(story.invoice, moments, [*away, *silent])


def _story(invoice_id: str) -> invoices_pb2.GetInvoiceStoryResponse:
    return connection.desk().GetInvoiceStory(invoices_pb2.GetInvoiceStoryRequest(invoice_id=invoice_id))


def _paid_by(story: invoices_pb2.GetInvoiceStoryResponse) -> tuple[Sequence[PaidBy], Sequence[str]]:
    """Returns the bank lines that paid the deals, and the services that did not answer."""
    completed = (each.deal for each in story.deals if each.deal.status == invoices_pb2.DEAL_STATUS_COMPLETED)
    try:
        for deal in completed:
            request = lines_pb2.ListLinePaymentsRequest(deal_id=deal.deal_id)
            if payments := connection.line_payments().ListLinePayments(request).payments:
                wanted = bank_pb2.ListLinesRequest(line_ids=[each.line_id for each in payments])
                lines = {each.line_id: each for each in connection.bank().ListLines(wanted).lines}
                of = (lines.get(each.line_id, bank_pb2.Line()) for each in payments)
                return [PaidBy(*each, deal.currency_code) for each in zip(payments, of, strict=True)], ()
    except Refused as refused:
        if not connection.is_away(refused):
            raise
        return (), ("bank",)
    return (), ()


def _money(
    invoice_id: str,
) -> tuple[Sequence[withdrawals_pb2.Transfer], corrections_pb2.ListCorrectionsResponse]:
    transfers = withdrawals_pb2.ListTransfersRequest(invoice_id=invoice_id, with_balances=True)
    corrections = corrections_pb2.ListCorrectionsRequest(invoice_id=invoice_id)
    return (
        connection.withdrawals().ListTransfers(transfers).transfers,
        connection.corrections().ListCorrections(corrections),
    )


def _webhooks(invoice_id: str) -> webhooks_pb2.ListInvoiceEventsResponse:
    request = webhooks_pb2.ListInvoiceEventsRequest(invoice_id=invoice_id, with_acts=True)
    return connection.webhooks().ListInvoiceEvents(request)


_CALLS: Final[Mapping[str, Callable[[str], Any]]] = {
    "invoices": _story,
    "withdrawals": _money,
    "webhooks": _webhooks,
}


def as_json(moments: Sequence[Moment]) -> list[dict[str, Any]]:
    return [
        {
            "at": each.at.isoformat(),
            "service": each.service,
            "title": each.title,
            "by": each.by,
            "details": dict(each.details),
            "note": each.note,
            "thing": each.thing,
        }
        for each in moments
    ]


def print_timeline(moments: Sequence[Moment]) -> None:
    """Prints a line for each moment, and below it its details and the words of its author."""
    output.console.print()
    output.console.print("[bold]Timeline[/bold]")
    for each in moments:
        by = f" [dim]by {_shown(each.by)}[/dim]" if each.by else ""
        output.console.print(f"{each.at:%Y-%m-%d %H:%M:%S}  {_shown(each.title)}{by}", soft_wrap=True)
        for name, value in each.details:
            output.console.print(f"    [dim]{name}[/dim] {_shown(value)}", soft_wrap=True)
        if each.note:
            output.console.print(f"    “{_shown(each.note)}”", soft_wrap=True)


def _shown(text: str) -> str:
    return escape(tables.printable(text))
