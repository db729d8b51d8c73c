"""The verification after a restore: what the databases have lost and NATS knows, and what an operator looks up."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from cli import connection
from cli.moments import EARLIEST
from cli.verifying import CALL_SECONDS, FACTS_PAGE, Findings, Repairs, every
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2
from kit.base.ids import first_secret_id
from kit.base.proto import datetime_from, timestamp_from

CREATED_BEFORE = timedelta(days=1)
"""An invoice that finished since a time may have been created so long before: an appeal waits for an operator."""


def created_since(since: datetime) -> datetime:
    """Returns the time from which on invoices were created that may have finished since that time."""
    return max(since - CREATED_BEFORE, EARLIEST)


def before_ids_since(since: datetime) -> str:
    """Returns the id after which those invoices stand."""
    return str(first_secret_id(created_since(since)))


def check_forgotten(findings: Findings, *, since: datetime) -> None:
    """Checks that each invoice is what the signed fact in NATS says of it."""
    pending = _Pending()
    for after_seq, page in _pages(since):
        if after_seq == 0 and page.HasField("begins_at") and datetime_from(page.begins_at) > since:
            findings.wrong("facts of NATS", _begins_later(datetime_from(page.begins_at), since))
        findings.count("facts of NATS", page.read)
        pending.add(after_seq, page)
        for each in page.facts:
            if each.status != invoices_pb2.INVOICE_STATUS_PENDING:
                findings.wrong("facts of NATS", _forgotten(each))
        findings.advance(page.read)
    for facts in pending.facts.values():
        findings.wrong("facts of NATS", _pending(facts))


@dataclass
class _Pending:
    """The pending invoices whose ends the stream knows.

    pages  the invoices of each page that has some, by the page's `after_seq`
    facts  by invoice, its different facts: several contradict each other, and none of them is taken
    """

    pages: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    facts: dict[str, list[invoices_pb2.InvoiceFinished]] = field(default_factory=lambda: defaultdict(list))

    def add(self, after_seq: int, page: invoices_pb2.ListForgottenFactsResponse) -> None:
        for each in page.facts:
            if each.status == invoices_pb2.INVOICE_STATUS_PENDING:
                self.pages[after_seq].add(each.fact.invoice_id)
                if each.fact not in self.facts[each.fact.invoice_id]:
                    self.facts[each.fact.invoice_id].append(each.fact)

    @property
    def contradicted(self) -> Mapping[str, Sequence[invoices_pb2.InvoiceFinished]]:
        return {id: facts for id, facts in self.facts.items() if len(facts) > 1}


def _pages(since: datetime) -> Iterator[tuple[int, invoices_pb2.ListForgottenFactsResponse]]:
    """Yields each page of facts, with its `after_seq`."""
    after_seq, more = 0, True
    while more:
        request = invoices_pb2.ListForgottenFactsRequest(
            since=timestamp_from(since), after_seq=after_seq, limit=FACTS_PAGE
        )
        page = connection.invoices().ListForgottenFacts(request, timeout=CALL_SECONDS)
        yield after_seq, page
        after_seq, more = page.last_seq, page.more


def _begins_later(begins_at: datetime, since: datetime) -> str:
    return (
        f"the stream begins at {begins_at:%Y-%m-%dT%H:%M:%SZ}, after {since:%Y-%m-%dT%H:%M:%SZ}: what the databases "
        "lost of the time between, it can't show. Read the logs of that time"
    )


def _pending(facts: Sequence[invoices_pb2.InvoiceFinished]) -> str:
    if len(facts) > 1:
        return f"{_named(facts[0])}: {_contradiction(facts)}. It is pending, and --repair leaves it so"
    says = f"{_named(facts[0])}: its signed fact says {_end(facts[0])}"
    return f"{says}, but it is pending: --repair ends it as the fact says if it still has the fact's deal"


def _contradiction(facts: Sequence[invoices_pb2.InvoiceFinished]) -> str:
    told = ", ".join(
        f"event {each.event_id} of {datetime_from(each.finished_at):%Y-%m-%dT%H:%M:%SZ} says {_end(each)}"
        for each in facts
    )
    return f"its signed facts contradict each other: {told}"


def _forgotten(forgotten: invoices_pb2.ForgottenFact) -> str:
    says = f"{_named(forgotten.fact)}: its signed fact says {_end(forgotten.fact)}"
    if forgotten.status == invoices_pb2.INVOICE_STATUS_UNSPECIFIED:
        return f"{says}, but invoices has lost it: tell the merchant, and keep this line as its only trace"
    return f"{says}, but it is {_name(forgotten.status)}: the merchant may have been told both"


def _named(fact: invoices_pb2.InvoiceFinished) -> str:
    return (
        f"invoice {fact.invoice_id}, order {fact.external_id} over {fact.amount} {fact.currency_code} of merchant "
        f"{fact.merchant_id}"
    )


def _end(fact: invoices_pb2.InvoiceFinished) -> str:
    credit = Decimal(fact.merchant_usdt) if fact.HasField("merchant_usdt") else Decimal(0)
    return f"{_name(fact.status)}{f' and a credit of {credit} USDT' if credit else ''}"


def _name(status: "invoices_pb2.InvoiceStatus.ValueType") -> str:
    return invoices_pb2.InvoiceStatus.Name(status).removeprefix("INVOICE_STATUS_").lower()


def restore_forgotten(repairs: Repairs, *, since: datetime) -> None:
    """Ends the pending invoices as their facts say; names those that can't, and those whose facts contradict each
    other.
    """
    pending = _Pending()
    for after_seq, page in _pages(since):
        pending.add(after_seq, page)
    contradicted = pending.contradicted
    for after_seq, ids in pending.pages.items():
        request = invoices_pb2.RestoreForgottenRequest(
            since=timestamp_from(since),
            after_seq=after_seq,
            limit=FACTS_PAGE,
            not_invoice_ids=sorted(ids & contradicted.keys()),
        )
        done = connection.invoices().RestoreForgotten(request, timeout=CALL_SECONDS)
        repairs.done += [f"invoice {id} ended as its signed fact says" for id in done.invoice_ids]
        repairs.unlike |= {each.invoice_id: _refused(each) for each in done.refused}
    for id, facts in contradicted.items():
        repairs.unlike[id] = (
            f"{_contradiction(facts)}. Agree with the merchant which one counts, and end the deal so: it gets one "
            "more event"
        )


def _refused(refused: invoices_pb2.NotRestored) -> str:
    if not refused.has_other_deal:
        return refused.reason
    return (
        f"{refused.reason}. Where the customer chose the method after TIME, choose it again and repeat --repair: "
        f"fiatgate checkout select {refused.invoice_id} METHOD, fiatgate checkout mark-paid {refused.invoice_id}"
    )


def withdrawals_to_look_up(since: datetime) -> list[str]:
    """Returns a sentence for each withdrawal that is not finished and was requested before this time: a restore may
    have lost how it ended. No fact in NATS has that.
    """
    request = withdrawals_pb2.ListAllWithdrawalsRequest(
        status=withdrawals_pb2.WITHDRAWAL_STATUS_PENDING, created_before=timestamp_from(since)
    )
    waiting = every(request, connection.withdrawals().ListAllWithdrawals, "withdrawals", "withdraw_uuid")
    return [
        f"withdrawal {each.withdraw_uuid} of {each.amount_to_receive} USDT to {each.address}: the restore may have "
        "lost that it was sent, canceled or failed. Before you send it look at the address, and for CancelWithdrawal "
        "and FailWithdrawal in the log since then"
        for each in waiting
        if datetime_from(each.updated_at) < since
    ]
