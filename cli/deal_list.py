"""Deals with what an operator compares: account, amount, reference, sender, merchant, order and age."""

from collections.abc import Sequence
from typing import Final

from cli import connection, output
from cli.listing import Row, Table
from console.words.deals import AWAITING_CONFIRMATION
from console.words.states import words_of
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.codes import in_groups
from kit.base.money import amount_text, money_text
from kit.base.proto import datetime_from
from kit.rpc.errors import Refused, not_found

OPEN: Final = (pb.DEAL_STATUS_PENDING, pb.DEAL_STATUS_APPEAL)
TABLE: Final = Table(
    columns="deal_id: deal | state | age | paid | amount | reference | account | sender_name: sender | merchant"
    " | external_id: order | customer_id: customer | payment_method_code: method",
    stacks="deal_id state | age paid | amount reference | account sender_name | merchant external_id",
    empty="No such deals",
    ids=("deal_id",),
)


def rows_of(answer: pb.ListDealsResponse) -> list[Row]:
    return [_row(*each) for each in zip(answer.deals, answer.contexts, strict=True)]


def _row(deal: pb.Deal, context: pb.DealContext) -> Row:
    """Returns the deal with the fields of its invoice and requisite."""
    values = output.plain(context)
    return output.plain(deal) | {name: values[name] for name in ("account", "customer_id", "external_id")}


def for_people(row: Row) -> Row:
    return {
        "state": words_of(row["sub_status"]),
        "paid": output.age(row["mark_paid_at"]),
        "amount": money_text(row["amount_to_send"], row["currency_code"]),
        "reference": in_groups(row["reference"]) if row["reference"] else "",
    }


def print_deals(deals: Sequence[pb.GetDealResponse]) -> None:
    """Prints a table of the deals with the ages of deal and mark."""
    rows = [_row(each.deal, each.context) for each in deals]
    TABLE.show([row | for_people(row) for row in rows])


def found_open(wanted: pb.ListDealsRequest) -> list[pb.GetDealResponse]:
    """Returns the open deals that match, oldest first: a deal that hangs is old."""
    found = []
    for status in [wanted.status] if wanted.status else OPEN:
        request = pb.ListDealsRequest(oldest_first=True)
        request.MergeFrom(wanted)
        request.status = status
        answer = connection.desk().ListDeals(request)
        pairs = zip(answer.deals, answer.contexts, strict=True)
        found += [pb.GetDealResponse(deal=deal, context=context) for deal, context in pairs]
    return sorted(found, key=lambda each: datetime_from(each.deal.created_at))[: wanted.limit]


def named(deal_ids: Sequence[str]) -> list[pb.GetDealResponse]:
    """Returns the deals with these ids. Raises Refused DEAL_NOT_FOUND, which names the deal."""
    return [_named(deal_id) for deal_id in dict.fromkeys(deal_ids)]


def _named(deal_id: str) -> pb.GetDealResponse:
    try:
        return connection.desk().GetDeal(pb.GetDealRequest(deal_id=deal_id))
    except Refused as refused:
        if refused.reason != "DEAL_NOT_FOUND":
            raise
        raise not_found("DEAL_NOT_FOUND", f"No such deal: {deal_id}", deal_id=deal_id) from None


def summary(rows: Sequence[Row], *, more: bool) -> str:
    """Returns the sentence above a list of deals; "" for an empty one."""
    if not rows:
        return ""
    count = f"The newest {len(rows)} deals" if more else "1 deal" if len(rows) == 1 else f"{len(rows)} deals"
    waiting = [
        row["mark_paid_at"]
        for row in rows
        if row["status"] == "appeal" or row["sub_status"] == AWAITING_CONFIRMATION
    ]
    if not waiting:
        return f"{count}; none waits for your decision."
    marked = [at for at in waiting if at]
    longest = f", the longest for {output.age(min(marked))}" if marked else ""
    waits_or_wait = "waits" if len(waiting) == 1 else "wait"
    return f"{count}; {len(waiting)} {waits_or_wait} for your decision{longest}."


def state_sentence(deal: pb.Deal) -> str:
    """Returns the sentence above a deal."""
    amount = money_text(deal.amount_to_send, deal.currency_code)
    reference = f", reference {in_groups(deal.reference)}" if deal.reference else ""
    if deal.HasField("adjusted_amount"):
        return (
            f"Part payment: {amount} were to be sent, {amount_text(deal.amount_fiat, deal.currency_code)} came, "
            f"{amount_text(deal.adjusted_amount, deal.currency_code)} of the order's "
            f"{money_text(deal.invoice_amount, deal.currency_code)} count as paid, "
            f"{money_text(deal.merchant_usdt, 'USDT')} were credited."
        )
    if deal.status == pb.DEAL_STATUS_COMPLETED:
        return f"Paid: {amount} came, {money_text(deal.merchant_usdt, 'USDT')} were credited."
    if deal.status == pb.DEAL_STATUS_APPEAL:
        return f"In appeal: has {amount} come{reference}?"
    if deal.sub_status == AWAITING_CONFIRMATION:
        return (
            f"Marked paid {output.age(output.plain(deal)['mark_paid_at'])} ago: has {amount} come{reference}?"
        )
    if deal.status == pb.DEAL_STATUS_PENDING:
        return f"Not marked paid yet: the customer is to send {amount}{reference}."
    return f"Ended without a payment: {words_of(deal.sub_status)}."
