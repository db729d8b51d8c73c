"""Calls that several rooms of the desk make, and the dashboard never."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from console.calls import or_none
from console.ui.values import word
from console.words.bank import PaidBy
from fiatgate.bank.v1 import bank_pb2
from fiatgate.invoices.v1 import invoices_pb2, lines_pb2
from kit.base.money import fiat_text, typed_decimal
from kit.rpc.errors import Refused, precondition

if TYPE_CHECKING:
    from fiatgate.bank.v1.bank_pb2_grpc import BankServiceAsyncStub


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


async def lines_that_wait(bank: BankServiceAsyncStub, deal_id: str) -> Sequence[bank_pb2.Line]:
    """Returns the bank lines that are proposed for the deal; none while bank is away."""
    request = bank_pb2.ListLinesRequest(deal_id=deal_id, state=bank_pb2.LINE_STATE_PROPOSED)
    found = await or_none(bank.ListLines(request))
    return found.lines if found else ()


async def require_line(bank: BankServiceAsyncStub, typed: Mapping[str, str], becomes: str) -> None:
    """Raises BANK_LINE_CONFLICT unless the rest of the bank line that filled in the form may pay, or the same form took
    it (`take_line`). Changes nothing.
    """
    if not typed["line"]:
        return
    line = (await bank.GetLine(bank_pb2.GetLineRequest(line_id=typed["line"]))).line
    is_taken = line.state == bank_pb2.LINE_STATE_IGNORED and line.reason == _reason(typed, becomes)
    if not is_taken and not (line.payable and Decimal(line.left) == _left(typed)):
        left = fiat_text(Decimal(line.left))
        raise precondition(
            "BANK_LINE_CONFLICT", f"The line is {word(line, 'state')}, and {left} of it is left"
        )


async def take_line(bank: BankServiceAsyncStub, typed: Mapping[str, str], becomes: str) -> None:
    """Ignores the rest of that line once its money is credited or returned. The same form again has done so already.
    Raises BANK_LINE_LEFT for any refusal: the line waits where it was.
    """
    if not typed["line"]:
        return
    request = bank_pb2.IgnoreLineRequest(
        line_id=typed["line"], reason=_reason(typed, becomes), left=f"{_left(typed):f}"
    )
    try:
        await bank.IgnoreLine(request)
    except Refused:
        raise precondition("BANK_LINE_LEFT", "The line is not taken out of the work") from None


async def line_of(bank: BankServiceAsyncStub, typed: Mapping[str, str]) -> bank_pb2.Line | None:
    """Returns the bank line that filled in the form."""
    if not typed["line"]:
        return None
    found = await or_none(bank.GetLine(bank_pb2.GetLineRequest(line_id=typed["line"])))
    return found.line if found else None


def _reason(typed: Mapping[str, str], becomes: str) -> str:
    return f"{becomes}, form {typed['request_key'][-8:]}"


def _left(typed: Mapping[str, str]) -> Decimal:
    try:
        return typed_decimal(typed["left"])
    except ValueError:
        return Decimal(0)
