"""Deals with what an operator compares: account, amount, reference, sender, merchant, order and age."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from cli import connection, names, output
from console.words.deals import AWAITING_CONFIRMATION, state_words
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.codes import in_groups
from kit.base.proto import datetime_from, timestamp_from
from kit.rpc.errors import Refused, invalid, not_found

OPEN: Final = (pb.DEAL_STATUS_PENDING, pb.DEAL_STATUS_APPEAL)
COLUMNS: Final = {
    "deal_id": "deal",
    "state": "state",
    "age": "age",
    "paid": "paid",
    "amount": "amount",
    "reference": "reference",
    "account": "account",
    "sender_name": "sender",
    "merchant": "merchant",
    "external_id": "order",
    "customer_id": "customer",
    "payment_method_code": "method",
}
STACKS: Final = (
    ("deal_id", "state"),
    ("age", "paid"),
    ("amount", "reference"),
    ("account", "sender_name"),
    ("merchant", "external_id"),
)


@dataclass(frozen=True)
class Listed:
    """A deal with the fields of its invoice and requisite; those are empty where the service is of an older version."""

    deal: pb.Deal
    context: pb.DealContext


@dataclass(frozen=True, kw_only=True)
class DealFilter:
    """A filter of deals. An empty text matches any value; status 0 matches any status."""

    status: int = pb.DEAL_STATUS_UNSPECIFIED
    sub_status: str = ""
    merchant_id: str = ""
    method_code: str = ""
    reference: str = ""
    sender_name: str = ""
    account: str = ""
    currency_code: str = ""
    amount_from: str = ""
    amount_to: str = ""
    customer_id: str = ""
    external_id: str = ""
    marked_paid: bool = False
    created_from: datetime | None = None
    created_before: datetime | None = None

    @property
    def is_narrow(self) -> bool:
        return self != DealFilter()


@dataclass(frozen=True)
class DealList:
    """Deals; and the last one that was read, with its time, if the service stopped before it had as many as it may."""

    deals: Sequence[Listed]
    reached_deal_id: str
    reached_at: datetime


def found(wanted: DealFilter, limit: int, *, oldest_first: bool = False, after_deal_id: str = "") -> DealList:
    """Returns the deals that match, newest first unless `oldest_first`."""
    request = pb.ListDealsRequest(
        limit=limit,
        sub_status=wanted.sub_status,
        oldest_first=oldest_first,
        merchant_id=wanted.merchant_id,
        payment_method_code=wanted.method_code,
        reference=wanted.reference,
        sender_name=wanted.sender_name,
        account=wanted.account,
        currency_code=wanted.currency_code,
        amount_from=wanted.amount_from,
        amount_to=wanted.amount_to,
        customer_id=wanted.customer_id,
        external_id=wanted.external_id,
        marked_paid=wanted.marked_paid,
        created_from=timestamp_from(wanted.created_from),
        created_before=timestamp_from(wanted.created_before),
        after_deal_id=after_deal_id,
    )
    request.status = wanted.status  # type: ignore[assignment]  # a number of this very enum
    answer = connection.desk().ListDeals(request)
    require_wanted(answer.deals, wanted, oldest_first=oldest_first)
    contexts = answer.contexts or [pb.DealContext()] * len(answer.deals)
    deals = [Listed(deal, context) for deal, context in zip(answer.deals, contexts, strict=True)]
    return DealList(deals, answer.reached_deal_id, datetime_from(answer.reached_at))


def require_wanted(deals: Sequence[pb.Deal], wanted: DealFilter, *, oldest_first: bool = False) -> None:
    """Raises Refused VALIDATION_ERROR when one of `deals` is not as `wanted`, or not in that order: an older service
    ignores the filters that it does not know, and answers with any merchant's deals.
    """
    opened = [datetime_from(deal.created_at) for deal in deals]
    in_order = not oldest_first or opened == sorted(opened)
    for deal, at in zip(deals, opened, strict=True):
        fits = in_order and (
            wanted.status in (pb.DEAL_STATUS_UNSPECIFIED, deal.status)
            and wanted.sub_status in ("", deal.sub_status)
            and wanted.merchant_id in ("", deal.merchant_id)
            and wanted.method_code in ("", deal.payment_method_code)
            and wanted.currency_code in ("", deal.currency_code)
            and (not wanted.marked_paid or deal.sub_status == AWAITING_CONFIRMATION)
            and (wanted.created_from is None or at >= wanted.created_from)
            and (wanted.created_before is None or at < wanted.created_before)
        )
        if not fits:
            raise invalid(
                "VALIDATION_ERROR",
                "The invoices service ignored a filter: it is of an older version. Upgrade all its processes first.",
            )


def found_open(wanted: DealFilter, limit: int) -> Sequence[Listed]:
    """Returns the open deals that match, oldest first: a deal that hangs is old."""
    statuses = [wanted.status] if wanted.status else OPEN
    deals = [
        listed
        for status in statuses
        for listed in found(replace(wanted, status=status), limit, oldest_first=True).deals
    ]
    return sorted(deals, key=lambda listed: datetime_from(listed.deal.created_at))[:limit]


def named(deal_ids: Sequence[str]) -> list[Listed]:
    """Returns the deals with these ids. Raises Refused DEAL_NOT_FOUND, which names the deal."""
    return [_named(deal_id) for deal_id in dict.fromkeys(deal_ids)]


def _named(deal_id: str) -> Listed:
    try:
        answer = connection.desk().GetDeal(pb.GetDealRequest(deal_id=deal_id))
    except Refused as refused:
        if refused.reason != "DEAL_NOT_FOUND":
            raise
        raise not_found("DEAL_NOT_FOUND", f"No such deal: {deal_id}", deal_id=deal_id) from None
    return Listed(answer.deal, answer.context)


def waits(deal: pb.Deal) -> bool:
    """Returns whether the deal waits for an operator's decision."""
    return deal.status == pb.DEAL_STATUS_APPEAL or deal.sub_status == AWAITING_CONFIRMATION


def print_rows(deals: Sequence[Listed], *, as_json: bool) -> None:
    """Prints the deals as a table with the ages of deal and mark, or as JSON, which has the times themselves."""
    rows = [_row(listed) for listed in deals]
    if not as_json:
        merchants = names.of_merchants(listed.deal.merchant_id for listed in deals)
        ids = output.shortened(listed.deal.deal_id for listed in deals)
        rows = [row | _for_people(row, merchants, ids) for row in rows]
    output.rows(rows, COLUMNS, as_json=as_json, empty="No such deals", stacks=STACKS)


def _row(listed: Listed) -> dict[str, Any]:
    context = output.plain(listed.context)
    return output.plain(listed.deal) | {
        name: context[name] for name in ("account", "customer_id", "external_id")
    }


def _for_people(
    row: Mapping[str, Any], merchants: Mapping[str, str], ids: Mapping[str, str]
) -> dict[str, str]:
    return {
        "deal_id": ids[row["deal_id"]],
        "state": state_words(row["sub_status"]),
        "age": output.age(row["created_at"]),
        "paid": output.age(row["mark_paid_at"]),
        "amount": f"{row['amount_to_send']} {row['currency_code']}",
        "reference": in_groups(row["reference"]) if row["reference"] else "",
        "merchant": merchants[row["merchant_id"]],
    }


def summary(deals: Sequence[pb.Deal], *, more: bool) -> str:
    """Returns the sentence above a list of deals; "" for an empty one."""
    if not deals:
        return ""
    count = (
        f"The newest {len(deals)} deals" if more else "1 deal" if len(deals) == 1 else f"{len(deals)} deals"
    )
    waiting = [output.plain(deal)["mark_paid_at"] for deal in deals if waits(deal)]
    if not waiting:
        return f"{count}; none waits for your decision."
    marked = [at for at in waiting if at]
    longest = f", the longest for {output.age(min(marked))}" if marked else ""
    waits_or_wait = "waits" if len(waiting) == 1 else "wait"
    return f"{count}; {len(waiting)} {waits_or_wait} for your decision{longest}."


def state_sentence(deal: pb.Deal) -> str:
    """Returns the sentence above a deal."""
    amount = f"{deal.amount_to_send} {deal.currency_code}"
    reference = f", reference {in_groups(deal.reference)}" if deal.reference else ""
    if deal.HasField("adjusted_amount"):
        return (
            f"Completed with a lower amount: {amount} were to be sent, {deal.adjusted_amount} of the order's "
            f"{deal.invoice_amount} {deal.currency_code} count as paid, {deal.merchant_usdt} USDT were credited."
        )
    if deal.status == pb.DEAL_STATUS_COMPLETED:
        return f"Completed: {amount} came, {deal.merchant_usdt} USDT were credited."
    if deal.status == pb.DEAL_STATUS_APPEAL:
        return f"In appeal: has {amount} come{reference}?"
    if deal.sub_status == AWAITING_CONFIRMATION:
        return (
            f"Marked paid {output.age(output.plain(deal)['mark_paid_at'])} ago: has {amount} come{reference}?"
        )
    if deal.status == pb.DEAL_STATUS_PENDING:
        return f"Not marked paid yet: the customer is to send {amount}{reference}."
    return f"Ended without a payment: {deal.sub_status.replace('_', ' ')}."
