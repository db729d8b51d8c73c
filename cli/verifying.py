"""The verification of the books: compares the data of invoices with those of withdrawals and webhooks.

Every check reads page by page, in order of invoice id, so that its memory does not grow with the business. Facts of an
invoice that finished a moment ago may not have arrived yet: they are counted as settling, not as wrong.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

from cli import acts, connection
from fiatgate.audit.v1 import audit_pb2
from fiatgate.books.v1 import books_pb2
from fiatgate.books.v1.books_pb2_grpc import BooksServiceStub
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.status.v1 import status_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2
from kit.base.proto import datetime_from
from kit.base.services import SERVICES
from kit.rpc.errors import Refused
from kit.rpc.values import LIST_MOST_ROWS

FACTS_PAGE = 250
"""Invoices per page with all their announced data: four such pages at their longest fill a message."""
CALL_SECONDS = 60
T = TypeVar("T")
Invoice = invoices_pb2.FinishedInvoice


@dataclass(frozen=True)
class Problem:
    """One error in the books. `invoice_id` is set when announcing that invoice again may repair it."""

    check: str
    text: str
    invoice_id: str | None = None


@dataclass
class Findings:
    """The numbers of checked things, and the errors found.

    unreadable  what a service could not read; everything else was checked
    not_run     checks that did not come to their end, because a service did not answer
    advance     is called with the number of things that were read
    """

    checked: dict[str, int] = field(default_factory=dict)
    settling: int = 0
    unchained: int = 0
    problems: list[Problem] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    advance: Callable[[int], object] = lambda number: None

    def count(self, what: str, number: int = 1) -> None:
        self.checked[what] = self.checked.get(what, 0) + number

    def wrong(self, check: str, text: str, invoice_id: str | None = None) -> None:
        self.problems.append(Problem(check, text, invoice_id))


@contextmanager
def going_on(findings: Findings, what: str) -> Iterator[None]:
    """Notes what fails in the block, so that the other checks go on."""
    try:
        yield
    except Refused as refused:
        reason = f"{what}: {refused.reason or refused.code.name}"
        (findings.not_run if connection.is_away(refused) else findings.unreadable).append(reason)


def check_books(findings: Findings) -> None:
    """Compares each service's rows with the acts that decided them, and with the values that must follow."""
    for service in SERVICES:
        stub = connection.books(service)
        with going_on(findings, f"books of {service}"):
            for part in stub.ListParts(books_pb2.ListPartsRequest(), timeout=CALL_SECONDS).parts:
                with going_on(findings, f"{part} of {service}"):
                    _check_part(findings, stub, part)


def _check_part(findings: Findings, stub: BooksServiceStub, part: str) -> None:
    after, more = "", True
    while more:
        request = books_pb2.CheckPageRequest(part=part, after=after, limit=LIST_MOST_ROWS)
        page = stub.CheckPage(request, timeout=CALL_SECONDS)
        findings.count(part, page.checked)
        findings.unreadable += page.unreadable
        for each in page.problems:
            findings.wrong(part, f"{each.subject}: {each.field} is {each.found}, due is {each.due}")
        findings.advance(page.checked)
        after, more = page.last, page.more


def check_acts(findings: Findings, *, known: Sequence[audit_pb2.Head] = ()) -> None:
    """Checks each service's chain of acts, and its head against `known` heads and those that other services keep."""
    heads = list(known)
    for service in SERVICES:
        with going_on(findings, f"heads that {service} keeps"):
            heads += acts.head_of(service).kept
    for service in SERVICES:
        with going_on(findings, f"acts of {service}"):
            for page in acts.pages_of_check(service, heads):
                findings.count("acts", page.checked)
                findings.unchained += page.unchained
                findings.unreadable += [f"acts of {service}: {each}" for each in page.unreadable]
                for each in page.problems:
                    findings.wrong("acts", f"{service}: {each}")
                findings.advance(page.checked)


def check_ledger(findings: Findings) -> None:
    """Checks the ledger itself: sums, balances, the transfers of each withdrawal."""
    answer = connection.withdrawals().CheckLedger(withdrawals_pb2.CheckLedgerRequest(), timeout=CALL_SECONDS)
    findings.count("transfers", answer.transfers)
    findings.count("accounts", answer.accounts)
    if Decimal(answer.sum) != 0:
        findings.wrong("ledger", f"all accounts together hold {answer.sum} USDT instead of nothing")
    for problem in answer.problems:
        findings.wrong("ledger", problem)
    findings.advance(1)


def check_credits(findings: Findings, *, settled_before: datetime, after: str = "") -> None:
    """Checks that each successful invoice after this id is credited exactly once with the right amount, and nothing
    else is.
    """
    invoices, credits = _finished_invoices(findings, after), _credits(after)
    for invoice, credit in _joined(invoices, credits, lambda credit: credit.invoice_id):
        if invoice is not None:
            findings.advance(1)
            findings.count("finished invoices")
            _check_fact(findings, invoice)
            _check_credit(findings, invoice, credit, settled_before)
        elif credit is not None:
            with going_on(findings, f"credit of invoice {credit.invoice_id}"):
                _orphan(findings, credit, settled_before)


def _joined(
    invoices: Iterator[Invoice], others: Iterator[T], id_of: Callable[[T], str]
) -> Iterator[tuple[Invoice | None, T | None]]:
    """Joins two lists in the order of invoice ids, read in parallel; None where one of them has no such id."""
    other = next(others, None)
    for invoice in invoices:
        while other is not None and id_of(other) < invoice.invoice_id:
            yield None, other
            other = next(others, None)
        matching = other if other is not None and id_of(other) == invoice.invoice_id else None
        yield invoice, matching
        if matching is not None:
            other = next(others, None)
    while other is not None:
        yield None, other
        other = next(others, None)


def _check_fact(findings: Findings, invoice: Invoice) -> None:
    """Reports an invoice whose signed data do not match: a row changed without the service is not announced or
    credited.
    """
    if invoice.unproven:
        text = (
            f"invoice {invoice.invoice_id}: finished, but {invoice.unproven}: changed past the service. If it is right "
            f"all the same: fiatgate verify --repair --accept {invoice.invoice_id}"
        )
        findings.wrong("facts", text)


def _settles(findings: Findings, invoice: Invoice, settled_before: datetime) -> bool:
    """Counts an invoice that finished a moment ago: its facts may still be on their way."""
    is_late = datetime_from(invoice.finished_at) > settled_before
    findings.settling += is_late
    return is_late


def _mendable(invoice: Invoice) -> str | None:
    """Returns the id of an invoice that can be announced again."""
    return None if invoice.unproven else invoice.invoice_id


def _check_credit(
    findings: Findings, invoice: Invoice, credit: withdrawals_pb2.Credit | None, settled_before: datetime
) -> None:
    due = Decimal(invoice.merchant_usdt) if invoice.HasField("merchant_usdt") else Decimal(0)
    if credit is None:
        text = f"{due} USDT were never credited to merchant {invoice.merchant_id}"
        if due and not _settles(findings, invoice, settled_before):
            findings.wrong("credits", f"invoice {invoice.invoice_id}: {text}", _mendable(invoice))
        return
    findings.count("credits")
    if Decimal(credit.amount) != due or credit.merchant_id != invoice.merchant_id:
        text = (
            f"invoice {invoice.invoice_id}: {credit.amount} USDT credited to merchant {credit.merchant_id}, "
            f"{due} due to merchant {invoice.merchant_id}"
        )
        findings.wrong("credits", text)


def _orphan(findings: Findings, credit: withdrawals_pb2.Credit, settled_before: datetime) -> None:
    """Checks a credit without a finished invoice after another query: it may have finished since its page was read."""
    page = _page_of(credit.invoice_id)
    for invoice in page.invoices:
        if invoice.invoice_id == credit.invoice_id:
            _check_credit(findings, invoice, credit, settled_before)
    if page.last_invoice_id != credit.invoice_id:
        text = f"credit of {credit.amount} USDT for invoice {credit.invoice_id}, which is unknown or not finished"
        findings.wrong("credits", f"{text}{_told(credit.invoice_id)}")


def _page_of(invoice_id: str) -> invoices_pb2.ListFinishedInvoicesResponse:
    """Returns the page that ends with the invoice, if it is finished; one that can't be read is named elsewhere."""
    number = UUID(invoice_id).int
    just_before = str(UUID(int=number - 1)) if number else ""
    request = invoices_pb2.ListFinishedInvoicesRequest(after_invoice_id=just_before, limit=1)
    return connection.invoices().ListFinishedInvoices(request, timeout=CALL_SECONDS)


def check_webhooks(findings: Findings, *, settled_before: datetime, after: str = "") -> None:
    """Checks that each finished invoice after this id with a callback URL has exactly one event with its data, and no
    other has one.
    """
    events: dict[str, webhooks_pb2.InvoiceEvents] = {}

    def invoices() -> Iterator[Invoice]:
        for page in _finished_pages(after):
            request = webhooks_pb2.CheckInvoicesRequest(
                invoice_ids=[each.invoice_id for each in page.invoices],
                facts=[each.fact for each in page.invoices],
            )
            answer = connection.webhooks().CheckInvoices(request, timeout=CALL_SECONDS)
            events.update((each.invoice_id, each) for each in answer.invoices)
            yield from page.invoices
            findings.advance(len(page.invoices))

    for invoice, event in _joined(invoices(), _invoices_with_event(after), str):
        if invoice is not None:
            _check_event(findings, invoice, events.pop(invoice.invoice_id, None), settled_before)
        elif event is not None:
            _orphan_event(findings, event)


def _check_event(
    findings: Findings, invoice: Invoice, found: webhooks_pb2.InvoiceEvents | None, settled_before: datetime
) -> None:
    if found is None:
        text = f"invoice {invoice.invoice_id} has no webhook event"
        if invoice.has_callback and not _settles(findings, invoice, settled_before):
            findings.wrong("webhooks", text, _mendable(invoice))
        return
    findings.count("webhook events", found.events)
    if not invoice.has_callback:
        findings.wrong("webhooks", f"invoice {invoice.invoice_id} has an event but no callback URL")
    elif found.events != 1:
        findings.wrong("webhooks", f"invoice {invoice.invoice_id} has {found.events} webhook events")
    # The data of a sealed event are webhooks' own. An event without a right seal is rebuilt from the announced fact.
    mendable = any(each.field == "seal" for each in found.differences)
    for each in found.differences:
        text = f"event of invoice {invoice.invoice_id}: {each.field} is {each.found}, due is {each.due}"
        findings.wrong("webhooks", text, _mendable(invoice) if mendable else None)


def _orphan_event(findings: Findings, invoice_id: str) -> None:
    """Reports an event without an invoice that has finished, after another query: it may have meanwhile."""
    if _page_of(invoice_id).last_invoice_id != invoice_id:
        text = f"event of invoice {invoice_id}, which is unknown or not finished"
        findings.wrong("webhooks", f"{text}{_told(invoice_id)}")


def _told(invoice_id: str) -> str:
    """Returns what the merchant was told of an invoice, as the end of a sentence; empty when there is no event."""
    request = webhooks_pb2.ListEventsRequest(invoice_id=invoice_id, limit=1)
    for event in connection.webhooks().ListEvents(request, timeout=CALL_SECONDS).events:
        delivered = event.status == webhooks_pb2.EVENT_STATUS_SUCCESS
        place = "was delivered to" if delivered else "waits for"
        return f": {event.event_type} {place} merchant {event.merchant_id}"
    return ""


def check_stuck_events(findings: Findings) -> None:
    """Checks that no webhook event waits for a time in the past, or for no time."""
    request = webhooks_pb2.ListStuckEventsRequest(limit=LIST_MOST_ROWS)
    for event in connection.webhooks().ListStuckEvents(request, timeout=CALL_SECONDS).events:
        findings.wrong(
            "stuck events", f"webhook event {event.event_id} of invoice {event.invoice_id} is overdue"
        )
    findings.advance(1)


def check_parked(findings: Findings) -> None:
    """Checks that no consumer has parked events."""
    for service in ("withdrawals", "webhooks"):
        answer = connection.status(service).GetStatus(status_pb2.GetStatusRequest())
        parked = sum(int(gauge.value) for gauge in answer.gauges if gauge.name == "parked")
        if parked:
            events = "1 event is" if parked == 1 else f"{parked} events are"
            findings.wrong("parked events", f"{service}: {events} parked: fiatgate parked list")
        findings.advance(1)


@dataclass
class Repairs:
    """The outcome of a repair.

    done       the repairs, as sentences
    refused    the invoices that were not announced, because they are not proven
    unlike     by id the pending invoices that can't end as their signed facts say: the reason, and what to do
    requested  the ids of requests to accept such invoices, which another person approves
    """

    done: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    unlike: dict[str, str] = field(default_factory=dict)
    requested: list[str] = field(default_factory=list)


def repair(findings: Findings, *, accepted: Sequence[str] = ()) -> Repairs:
    """Repairs from PostgreSQL: announces invoices again, and makes stuck events due now.

    `accepted` invoices are announced as they are now, although no signature proves their data.
    """
    repairs = Repairs()
    if accepted:
        _accept(accepted, repairs)
    missing = sorted({problem.invoice_id for problem in findings.problems if problem.invoice_id})
    for start in range(0, len(missing), LIST_MOST_ROWS):
        request = invoices_pb2.ReannounceInvoicesRequest(invoice_ids=missing[start : start + LIST_MOST_ROWS])
        answer = connection.invoices().ReannounceInvoices(request, timeout=CALL_SECONDS)
        repairs.done += [f"invoice {id} announced again" for id in answer.invoice_ids]
        repairs.refused += answer.refused_invoice_ids
    if any(problem.check == "stuck events" for problem in findings.problems):
        due = connection.webhooks().RescheduleStuckEvents(webhooks_pb2.RescheduleStuckEventsRequest())
        repairs.done.append(f"{due.rescheduled} webhook events are due now")
    return repairs


def _accept(invoice_ids: Sequence[str], repairs: Repairs) -> None:
    accept = invoices_pb2.ReannounceInvoicesRequest(invoice_ids=invoice_ids, accept=True)
    try:
        answer = connection.invoices().ReannounceInvoices(accept, timeout=CALL_SECONDS)
        repairs.done += [f"invoice {id} accepted and announced again" for id in answer.invoice_ids]
    except Refused as refused:
        if refused.reason != "APPROVAL_REQUIRED":
            raise
        repairs.requested += refused.metadata["approval_id"].split()


def _finished_invoices(findings: Findings, after: str) -> Iterator[Invoice]:
    for page in _finished_pages(after):
        findings.unreadable += [f"finished invoice {each}" for each in page.unreadable]
        yield from page.invoices


def _finished_pages(after: str) -> Iterator[invoices_pb2.ListFinishedInvoicesResponse]:
    more, most = True, FACTS_PAGE
    while more:
        wanted = invoices_pb2.ListFinishedInvoicesRequest(after_invoice_id=after, limit=most)
        try:
            page = connection.invoices().ListFinishedInvoices(wanted, timeout=CALL_SECONDS)
        except Refused as refused:  # rows that SQL wrote may fill more than one answer
            if refused.reason != "INTERNAL_ERROR" or most == 1:
                raise
            most = max(most // 10, 1)
            continue
        yield page
        most = FACTS_PAGE
        after, more = page.last_invoice_id, page.more


def _invoices_with_event(after: str) -> Iterator[str]:
    while True:
        request = webhooks_pb2.ListEventInvoicesRequest(after_invoice_id=after, limit=LIST_MOST_ROWS)
        page = connection.webhooks().ListEventInvoices(request, timeout=CALL_SECONDS).invoice_ids
        yield from page
        if len(page) < LIST_MOST_ROWS:
            return
        after = page[-1]


def _credits(after: str) -> Iterator[withdrawals_pb2.Credit]:
    request = withdrawals_pb2.ListCreditsRequest(after_invoice_id=after)
    return every(request, connection.withdrawals().ListCredits, "credits", "invoice_id")


def every(request: Any, call: Callable[..., Any], things: str, id: str) -> Iterator[Any]:
    """Yields all things of a list, page by page; `after_<id>` of the request begins a page."""
    request.limit = LIST_MOST_ROWS
    while True:
        page = getattr(call(request, timeout=CALL_SECONDS), things)
        yield from page
        if len(page) < LIST_MOST_ROWS:
            return
        setattr(request, f"after_{id}", getattr(page[-1], id))
