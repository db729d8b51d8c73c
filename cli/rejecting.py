"""The rejection of many deals: one call for each.

A deal is rejected only in the state that the operator saw. One that has changed meanwhile, because the customer marked
it paid or another operator decided, stays as it is, and the others are still rejected.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from cli import connection, deal_list, output
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.rpc.errors import Refused
from kit.rpc.values import LIST_MOST_ROWS

MOST: Final = LIST_MOST_ROWS
"""The most deals at a time: an operator must be able to see them all before agreeing."""

_CHANGED: Final = frozenset({"DEAL_STATE_CONFLICT", "INVOICE_FINISHED"})


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
                    now = deal_list.named([deal.deal_id])[0].deal
        status = output.enum_word(pb.DealStatus.DESCRIPTOR, now.status)
        rows.append(
            {"deal_id": deal.deal_id, "outcome": outcome, "status": status, "sub_status": now.sub_status}
        )
        advance()
    return rows
