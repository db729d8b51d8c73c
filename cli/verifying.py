"""The proof that the books are right: what invoices says against what withdrawals and webhooks say.

Every check reads page by page, in order of invoice id, so that its memory does not grow with the business. What an
invoice finished a moment ago is still on its way to the others: it is counted as settling, not as wrong.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from cli import connection
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.status.v1 import status_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2
from kit.errors import Refused
from kit.proto import datetime_from

PAGE = 1000
CALL_SECONDS = 60
Advance = Callable[[int], None]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. `invoice_id` is set when announcing that invoice again may mend it."""

    check: str
    text: str
    invoice_id: str | None = None


@dataclass
class Findings:
    """What was looked at and what is wrong with it."""

    checked: dict[str, int] = field(default_factory=dict)
    settling: int = 0
    problems: list[Problem] = field(default_factory=list)

    def count(self, what: str, number: int = 1) -> None:
        self.checked[what] = self.checked.get(what, 0) + number

    def wrong(self, check: str, text: str, invoice_id: str | None = None) -> None:
        self.problems.append(Problem(check, text, invoice_id))


def check_ledger(findings: Findings, advance: Advance) -> None:
    """The books by themselves: sums, balances, the transfers of each withdrawal."""
    answer = connection.withdrawals().CheckLedger(withdrawals_pb2.CheckLedgerRequest(), timeout=CALL_SECONDS)
    findings.count("transfers", answer.transfers)
    findings.count("accounts", answer.accounts)
    if Decimal(answer.sum) != 0:
        findings.wrong("ledger", f"all accounts together hold {answer.sum} USDT instead of nothing")
    for problem in answer.problems:
        findings.wrong("ledger", problem)
    advance(1)


def check_credits(findings: Findings, advance: Advance, *, settled_before: datetime) -> None:
    """Each successful invoice is credited exactly once with the right amount, and nothing else is."""
    # Two lists in the same order, walked side by side.
    credits = _credits()
    credit = next(credits, None)
    for invoice in _finished_invoices():
        advance(1)
        findings.count("finished invoices")
        while credit is not None and credit.invoice_id < invoice.invoice_id:
            _orphan(findings, credit)
            credit = next(credits, None)
        matching = credit if credit is not None and credit.invoice_id == invoice.invoice_id else None
        _check_credit(findings, invoice, matching, settled_before)
        if matching is not None:
            credit = next(credits, None)
    while credit is not None:
        _orphan(findings, credit)
        credit = next(credits, None)


def _check_credit(
    findings: Findings,
    invoice: invoices_pb2.FinishedInvoice,
    credit: withdrawals_pb2.Credit | None,
    settled_before: datetime,
) -> None:
    due = Decimal(invoice.merchant_usdt) if invoice.HasField("merchant_usdt") else Decimal(0)
    if credit is None:
        if due == 0:
            return
        if datetime_from(invoice.finished_at) > settled_before:
            findings.settling += 1
            return
        text = (
            f"invoice {invoice.invoice_id}: {due} USDT were never credited to merchant {invoice.merchant_id}"
        )
        findings.wrong("credits", text, invoice.invoice_id)
        return
    findings.count("credits")
    if Decimal(credit.amount) != due or credit.merchant_id != invoice.merchant_id:
        text = (
            f"invoice {invoice.invoice_id}: {credit.amount} USDT credited to merchant {credit.merchant_id}, "
            f"{due} due to merchant {invoice.merchant_id}"
        )
        findings.wrong("credits", text)


def _orphan(findings: Findings, credit: withdrawals_pb2.Credit) -> None:
    """A credit without a finished invoice; looked up once more, for it may have finished since its page was read."""
    request = invoices_pb2.GetInvoiceRequest(merchant_id=credit.merchant_id, invoice_ref=credit.invoice_id)
    try:
        invoice = connection.invoices().GetInvoice(request).invoice
    except Refused as refused:
        if refused.reason != "INVOICE_NOT_FOUND":
            raise
        findings.wrong(
            "credits", f"credit of {credit.amount} USDT for an unknown invoice {credit.invoice_id}"
        )
        return
    if invoice.status != invoices_pb2.INVOICE_STATUS_SUCCESS:
        text = f"invoice {credit.invoice_id}: {credit.amount} USDT credited although it is no success"
        findings.wrong("credits", text)


def check_webhooks(findings: Findings, advance: Advance, *, settled_before: datetime) -> None:
    """Each terminal invoice with a callback URL has exactly one event, and it carries the invoice's event id."""
    for page in _finished_pages():
        request = webhooks_pb2.CheckInvoicesRequest(invoice_ids=[invoice.invoice_id for invoice in page])
        answer = connection.webhooks().CheckInvoices(request, timeout=CALL_SECONDS)
        events = {each.invoice_id: each for each in answer.invoices}
        for invoice in page:
            _check_event(findings, invoice, events.get(invoice.invoice_id), settled_before)
        advance(len(page))


def _check_event(
    findings: Findings,
    invoice: invoices_pb2.FinishedInvoice,
    found: webhooks_pb2.InvoiceEvents | None,
    settled_before: datetime,
) -> None:
    if found is None:
        if not invoice.has_callback:
            return
        if datetime_from(invoice.finished_at) > settled_before:
            findings.settling += 1
            return
        findings.wrong("webhooks", f"invoice {invoice.invoice_id} has no webhook event", invoice.invoice_id)
        return
    findings.count("webhook events", found.events)
    if not invoice.has_callback:
        findings.wrong("webhooks", f"invoice {invoice.invoice_id} has an event but no callback URL")
    elif found.events != 1:
        findings.wrong("webhooks", f"invoice {invoice.invoice_id} has {found.events} webhook events")
    elif found.payload_event_id != invoice.event_id:
        text = f"invoice {invoice.invoice_id}: its event carries {found.payload_event_id}, not {invoice.event_id}"
        findings.wrong("webhooks", text)


def check_stuck_events(findings: Findings, advance: Advance) -> None:
    """No webhook event waits for a time that has passed, or for none at all."""
    request = webhooks_pb2.ListStuckEventsRequest(limit=PAGE)
    for event in connection.webhooks().ListStuckEvents(request, timeout=CALL_SECONDS).events:
        findings.wrong(
            "stuck events", f"webhook event {event.event_id} of invoice {event.invoice_id} is overdue"
        )
    advance(1)


def check_parked(findings: Findings, advance: Advance) -> None:
    """No event was given up on by its consumer."""
    for service in ("withdrawals", "webhooks"):
        answer = connection.status(service).GetStatus(status_pb2.GetStatusRequest())
        parked = sum(int(gauge.value) for gauge in answer.gauges if gauge.name == "parked")
        if parked:
            findings.wrong("parked events", f"{service}: {parked} events are parked: fiatgate parked list")
        advance(1)


def repair(findings: Findings) -> list[str]:
    """Rebuild what PostgreSQL still knows: announce invoices again, give stuck events an attempt now."""
    done: list[str] = []
    missing = sorted({problem.invoice_id for problem in findings.problems if problem.invoice_id})
    for start in range(0, len(missing), PAGE):
        request = invoices_pb2.ReannounceInvoicesRequest(invoice_ids=missing[start : start + PAGE])
        announced = connection.invoices().ReannounceInvoices(request, timeout=CALL_SECONDS).invoice_ids
        done += [f"invoice {invoice_id} announced again" for invoice_id in announced]
    if any(problem.check == "stuck events" for problem in findings.problems):
        answer = connection.webhooks().RescheduleStuckEvents(webhooks_pb2.RescheduleStuckEventsRequest())
        done.append(f"{answer.rescheduled} webhook events are due now")
    return done


def settled_before(now: datetime, grace_seconds: int) -> datetime:
    return now - timedelta(seconds=grace_seconds)


def _finished_invoices() -> Iterator[invoices_pb2.FinishedInvoice]:
    for page in _finished_pages():
        yield from page


def _finished_pages() -> Iterator[Sequence[invoices_pb2.FinishedInvoice]]:
    after = ""
    while True:
        request = invoices_pb2.ListFinishedInvoicesRequest(after_invoice_id=after, limit=PAGE)
        page = connection.invoices().ListFinishedInvoices(request, timeout=CALL_SECONDS).invoices
        if page:
            yield page
            after = page[-1].invoice_id
        if len(page) < PAGE:
            return


def _credits() -> Iterator[withdrawals_pb2.Credit]:
    after = ""
    while True:
        request = withdrawals_pb2.ListCreditsRequest(after_invoice_id=after, limit=PAGE)
        page = connection.withdrawals().ListCredits(request, timeout=CALL_SECONDS).credits
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].invoice_id
