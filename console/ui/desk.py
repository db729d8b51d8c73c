"""Calls that several rooms of the desk make, and the dashboard never."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

from console.calls import or_none
from console.words.bank import PaidBy
from fiatgate.bank.v1 import bank_pb2
from fiatgate.invoices.v1 import invoices_pb2, lines_pb2


async def lines_that_paid(
    payments_of: Callable[[lines_pb2.ListLinePaymentsRequest], Awaitable[lines_pb2.ListLinePaymentsResponse]],
    lines_of: Callable[[bank_pb2.ListLinesRequest], Awaitable[bank_pb2.ListLinesResponse]],
    deals: Iterable[invoices_pb2.Deal],
) -> Sequence[PaidBy] | None:
    """Returns the payments of the deals by bank lines; None while invoices is away. While bank is away, payments are
    without day and name.
    """
    found: list[PaidBy] = []
    for deal in deals:
        if deal.status != invoices_pb2.DEAL_STATUS_COMPLETED:
            continue
        answer = await or_none(payments_of(lines_pb2.ListLinePaymentsRequest(deal_id=deal.deal_id)))
        if answer is None:
            return None
        if not answer.payments:
            continue
        wanted = bank_pb2.ListLinesRequest(line_ids=[each.line_id for each in answer.payments])
        lines = await or_none(lines_of(wanted))
        known = {line.line_id: line for line in lines.lines} if lines else {}
        found += (
            PaidBy(each, known.get(each.line_id, bank_pb2.Line()), deal.currency_code)
            for each in answer.payments
        )
    return found
