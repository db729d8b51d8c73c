"""The rejection of many deals: the selection, and one call for each.

A deal is rejected only in the state that the operator saw. One that has changed meanwhile, because the customer marked
it paid or another operator decided, stays as it is, and the others are still rejected.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from cli import connection, output
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.proto import datetime_from, timestamp_from
from kit.rpc.errors import Refused, invalid, not_found
from kit.rpc.values import LIST_MOST_ROWS

MOST: Final = LIST_MOST_ROWS
"""The most deals at a time: an operator must be able to see them all before agreeing."""

OVERDUE: Final = "confirmation_overdue"
AWAITING_PAYMENT: Final = "awaiting_payment"
OPEN: Final = (pb.DEAL_STATUS_PENDING, pb.DEAL_STATUS_APPEAL)
COLUMNS: Final = {
    "deal_id": "deal",
    "age": "age",
    "status": "status",
    "sub_status": "sub status",
    "amount": "amount",
    "payment_method_code": "method",
    "account": "account",
    "paid": "paid",
    "merchant_id": "merchant",
    "customer_id": "customer",
    "external_id": "order",
}
_CHANGED: Final = frozenset({"DEAL_STATE_CONFLICT", "INVOICE_FINISHED"})
_UNIT_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def age(text: str) -> timedelta:
    """Returns a text such as "24h" as a time. Raises ValueError."""
    found = re.fullmatch(r"([0-9]{1,6})([smhd])", text)
    if found is None:
        raise ValueError(f"{text!r} is no time such as 90s, 30m, 24h or 7d")
    return timedelta(seconds=int(found[1]) * _UNIT_SECONDS[found[2]])


@dataclass(frozen=True, kw_only=True)
class DealFilter:
    """A filter of deals. An empty text matches any value; status 0 matches any status."""

    status: int = pb.DEAL_STATUS_UNSPECIFIED
    sub_status: str = ""
    merchant_id: str = ""
    method_code: str = ""
    created_before: datetime | None = None

    @property
    def is_narrow(self) -> bool:
        return self != DealFilter()


def found(wanted: DealFilter, limit: int, *, oldest_first: bool = False) -> Sequence[pb.Deal]:
    """Returns the deals that match, newest first unless `oldest_first`."""
    request = pb.ListDealsRequest(
        limit=limit,
        sub_status=wanted.sub_status,
        oldest_first=oldest_first,
        merchant_id=wanted.merchant_id,
        payment_method_code=wanted.method_code,
        created_before=timestamp_from(wanted.created_before),
    )
    request.status = wanted.status  # type: ignore[assignment]  # a number of this very enum
    deals = connection.desk().ListDeals(request).deals
    require_wanted(deals, wanted, oldest_first=oldest_first)
    return deals


def require_wanted(deals: Sequence[pb.Deal], wanted: DealFilter, *, oldest_first: bool = False) -> None:
    """Raises Refused VALIDATION_ERROR when one of `deals` is not as `wanted`, or not in that order: an older service
    ignores the filters that it does not know, and answers with any merchant's deals.
    """
    opened = [datetime_from(deal.created_at) for deal in deals]
    in_order = not oldest_first or opened == sorted(opened)
    for deal in deals:
        fits = in_order and (
            wanted.status in (pb.DEAL_STATUS_UNSPECIFIED, deal.status)
            and wanted.sub_status in ("", deal.sub_status)
            and wanted.merchant_id in ("", deal.merchant_id)
            and wanted.method_code in ("", deal.payment_method_code)
            and (wanted.created_before is None or datetime_from(deal.created_at) < wanted.created_before)
        )
        if not fits:
            raise invalid(
                "VALIDATION_ERROR",
                "The invoices service ignored a filter: it is of an older version. Upgrade all its processes first.",
            )


def found_open(wanted: DealFilter, limit: int) -> Sequence[pb.Deal]:
    """Returns the open deals that match, oldest first: a deal that hangs is old."""
    statuses = [wanted.status] if wanted.status else OPEN
    deals = [
        deal
        for status in statuses
        for deal in found(replace(wanted, status=status), limit, oldest_first=True)
    ]
    return sorted(deals, key=lambda deal: datetime_from(deal.created_at))[:limit]


def named(deal_ids: Sequence[str]) -> Iterator[pb.Deal]:
    """Yields the deals with these ids. Raises Refused DEAL_NOT_FOUND, which names the deal."""
    for deal_id in dict.fromkeys(deal_ids):
        try:
            yield connection.desk().GetDeal(pb.GetDealRequest(deal_id=deal_id)).deal
        except Refused as refused:
            if refused.reason != "DEAL_NOT_FOUND":
                raise
            raise not_found("DEAL_NOT_FOUND", f"No such deal: {deal_id}", deal_id=deal_id) from None


def have_time_to_pay(deals: Sequence[pb.Deal], now: datetime) -> int:
    """Returns how many of the customers have not marked the deal paid and still may."""
    return sum(deal.sub_status == AWAITING_PAYMENT and datetime_from(deal.expires_at) > now for deal in deals)


def invoice_of(deal: pb.Deal) -> pb.Invoice:
    request = pb.GetInvoiceRequest(merchant_id=deal.merchant_id, invoice_ref=deal.invoice_id)
    return connection.invoices().GetInvoice(request).invoice


def row_of(deal: pb.Deal, accounts: Mapping[str, str]) -> dict[str, Any]:
    """Returns the deal with the fields that an operator compares: its account, customer and order."""
    invoice = invoice_of(deal)
    return output.plain(deal) | {
        "account": accounts.get(deal.requisite_id),
        "customer_id": invoice.customer_id,
        "external_id": invoice.external_id,
    }


def print_rows(deals: Sequence[pb.Deal], *, as_json: bool) -> None:
    """Prints the deals as a table with the ages of deal and mark, or as JSON, which has the times themselves."""
    known = accounts() if deals else {}
    rows = [row_of(deal, known) for deal in deals]
    if not as_json:
        rows = [row | _in_short(row) for row in rows]
    output.rows(rows, COLUMNS, as_json=as_json, empty="No such deals")


def _in_short(row: Mapping[str, Any]) -> dict[str, str]:
    return {
        "age": output.age(row["created_at"]),
        "amount": f"{row['amount_fiat']} {row['currency_code']}",
        "paid": output.age(row["mark_paid_at"]),
    }


def accounts() -> dict[str, str]:
    """Returns account numbers by the id of the requisite."""
    answer = connection.desk().ListRequisites(pb.ListRequisitesRequest())
    return {each.requisite_id: each.account for each in answer.requisites}


def reject(deal: pb.Deal, *, note: str) -> pb.Deal:
    """Rejects the deal. Raises Refused DEAL_STATE_CONFLICT when it is no longer in the state of `deal`."""
    if deal.status == pb.DEAL_STATUS_APPEAL:
        resolve = pb.ResolveAppealRequest(
            deal_id=deal.deal_id, rejected=True, note=note, expected_sub_status=deal.sub_status
        )
        return connection.desk().ResolveAppeal(resolve).deal
    request = pb.RejectDealRequest(deal_id=deal.deal_id, note=note, expected_sub_status=deal.sub_status)
    return connection.desk().RejectDeal(request).deal


def reject_each(deals: Sequence[pb.Deal], *, note: str, advance: Callable[[], None]) -> list[dict[str, Any]]:
    """Rejects the deals one by one and returns a row for each.

    `outcome` is "rejected", "changed" (the row has the new state), the reason of another refusal, or "not tried" for
    the deals after that refusal: the service that gave it is not well.
    """
    rows: list[dict[str, Any]] = []
    stopped = False
    for deal in deals:
        now, outcome = deal, "not tried"
        if not stopped:
            try:
                now, outcome = reject(deal, note=note), "rejected"
            except Refused as refused:
                stopped = refused.reason not in _CHANGED
                outcome = refused.reason if stopped else "changed"
                if not stopped:
                    (now,) = named([deal.deal_id])
        status = output.enum_word(pb.DealStatus.DESCRIPTOR, now.status)
        rows.append(
            {"deal_id": deal.deal_id, "outcome": outcome, "status": status, "sub_status": now.sub_status}
        )
        advance()
    return rows
