"""The verification after a restore: what the databases have lost and NATS knows, and what an operator looks up."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from cli import connection
from cli.verifying import CALL_SECONDS, FACTS_PAGE, Advance, Findings, Repairs
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2
from kit.base.ids import first_secret_id
from kit.base.proto import datetime_from, timestamp_from
from kit.rpc.values import LIST_MOST_ROWS

CREATED_BEFORE = timedelta(days=1)
"""An invoice that finished since a time may have been created so long before: an appeal waits for an operator."""


def before_ids_since(since: datetime) -> str:
    """Returns the id after which the invoices stand that may have finished since that time."""
    return str(first_secret_id(since - CREATED_BEFORE))


def check_forgotten(findings: Findings, advance: Advance, *, since: datetime) -> None:
    """Checks that each invoice is what the signed fact in NATS says of it."""
    after_seq, more = 0, True
    while more:
        request = invoices_pb2.ListForgottenFactsRequest(
            since=timestamp_from(since), after_seq=after_seq, limit=FACTS_PAGE
        )
        page = connection.invoices().ListForgottenFacts(request, timeout=CALL_SECONDS)
        if after_seq == 0 and page.HasField("begins_at") and datetime_from(page.begins_at) > since:
            findings.wrong("facts of NATS", _begins_later(datetime_from(page.begins_at), since))
        findings.count("facts of NATS", page.read)
        for each in page.facts:
            findings.wrong("facts of NATS", _forgotten(each))
        advance(page.read)
        after_seq, more = page.last_seq, page.more


def _begins_later(begins_at: datetime, since: datetime) -> str:
    return (
        f"the stream begins at {begins_at:%Y-%m-%dT%H:%M:%SZ}, after {since:%Y-%m-%dT%H:%M:%SZ}: what the databases "
        "lost of the time between, it can't show. Read the logs of that time"
    )


def _forgotten(forgotten: invoices_pb2.ForgottenFact) -> str:
    fact = forgotten.fact
    credit = Decimal(fact.merchant_usdt) if fact.HasField("merchant_usdt") else Decimal(0)
    says = (
        f"invoice {fact.invoice_id}, order {fact.external_id} over {fact.amount} {fact.currency_code} of merchant "
        f"{fact.merchant_id}: its signed fact says {_name(fact.status)}"
        f"{f' and a credit of {credit} USDT' if credit else ''}"
    )
    if forgotten.status == invoices_pb2.INVOICE_STATUS_UNSPECIFIED:
        return f"{says}, but invoices has lost it: tell the merchant, and keep this line as its only trace"
    if forgotten.status == invoices_pb2.INVOICE_STATUS_PENDING:
        return f"{says}, but it is pending: --repair ends it as the fact says if it still has the fact's deal"
    return f"{says}, but it is {_name(forgotten.status)}: the merchant may have been told both"


def _name(status: "invoices_pb2.InvoiceStatus.ValueType") -> str:
    return invoices_pb2.InvoiceStatus.Name(status).removeprefix("INVOICE_STATUS_").lower()


def restore_forgotten(repairs: Repairs, *, since: datetime) -> None:
    """Ends the pending invoices as their facts say; names those that can't."""
    after_seq, more = 0, True
    while more:
        request = invoices_pb2.RestoreForgottenRequest(
            since=timestamp_from(since), after_seq=after_seq, limit=FACTS_PAGE
        )
        page = connection.invoices().RestoreForgotten(request, timeout=CALL_SECONDS)
        repairs.done += [f"invoice {id} ended as its signed fact says" for id in page.invoice_ids]
        repairs.unlike += page.refused_invoice_ids
        after_seq, more = page.last_seq, page.more


def withdrawals_to_look_up(since: datetime) -> list[str]:
    """Returns a sentence for each withdrawal that is not finished and was requested before this time: a restore may
    have lost that it was sent.
    """
    return [
        f"withdrawal {each.withdraw_uuid} of {each.amount_to_receive} USDT to {each.address}: look at the address "
        "before you send it, the restore may have lost that it was sent"
        for each in _open_withdrawals(since)
        if datetime_from(each.updated_at) < since
    ]


def _open_withdrawals(since: datetime) -> Iterator[withdrawals_pb2.Withdrawal]:
    request = withdrawals_pb2.ListAllWithdrawalsRequest(
        status=withdrawals_pb2.WITHDRAWAL_STATUS_PENDING,
        created_before=timestamp_from(since),
        limit=LIST_MOST_ROWS,
    )
    while True:
        page = connection.withdrawals().ListAllWithdrawals(request, timeout=CALL_SECONDS).withdrawals
        yield from page
        if len(page) < LIST_MOST_ROWS:
            return
        request.after_withdraw_uuid = page[-1].withdraw_uuid
