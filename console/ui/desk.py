"""Calls that several rooms of the desk make, and the dashboard never."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Protocol, TypeVar

from console.calls import or_none
from console.words.bank import PaidBy
from fiatgate.bank.v1 import bank_pb2
from fiatgate.invoices.v1 import invoices_pb2, lines_pb2
from kit.base.money import typed_decimal
from kit.rpc.errors import Refused, is_away, precondition

if TYPE_CHECKING:
    from fiatgate.bank.v1.bank_pb2_grpc import BankServiceAsyncStub

T = TypeVar("T")


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


class HasBank(Protocol):
    @property
    def bank(self) -> BankServiceAsyncStub: ...


async def used(deps: HasBank, typed: Mapping[str, str], kind: str, make: Callable[[], Awaitable[T]]) -> T:
    """Makes the correction or refund, and keeps the rest of the bank line that filled in its form for it before: it
    pays nothing else then. A refusal frees the line. While a second person has to approve it, or the answer is missing,
    the line stays kept; the same form goes on with it. Raises BANK_LINE_CONFLICT, STEP_UP_REQUIRED.
    """
    if not typed["line"]:
        return await make()
    use = f"{kind}:{typed['request_key']}"
    request = bank_pb2.UseLineRequest(line_id=typed["line"], left=f"{_left(typed):f}", used_for=use)
    claim = await deps.bank.UseLine(request)
    try:
        return await make()
    except Refused as refused:
        if refused.reason != "APPROVAL_REQUIRED" and not is_away(refused):
            end = bank_pb2.ReleaseLineRequest(line_id=typed["line"])
            if claim.HasField("claimed_at"):
                end.claimed_at.CopyFrom(claim.claimed_at)
            await or_none(deps.bank.ReleaseLine(end))
        raise


async def take_line(bank: BankServiceAsyncStub, typed: Mapping[str, str], becomes: str) -> None:
    """Ignores the rest of that line once its money is credited or returned. Raises BANK_LINE_LEFT for any refusal: the
    line waits where it was, and pays nothing.
    """
    if not typed["line"]:
        return
    try:
        await bank.IgnoreLine(bank_pb2.IgnoreLineRequest(line_id=typed["line"], reason=becomes))
    except Refused:
        raise precondition("BANK_LINE_LEFT", "The line is not taken out of the work") from None


async def line_of(bank: BankServiceAsyncStub, typed: Mapping[str, str]) -> bank_pb2.Line | None:
    """Returns the bank line that filled in the form."""
    if not typed["line"]:
        return None
    found = await or_none(bank.GetLine(bank_pb2.GetLineRequest(line_id=typed["line"])))
    return found.line if found else None


def _left(typed: Mapping[str, str]) -> Decimal:
    try:
        return typed_decimal(typed["left"])
    except ValueError:
        return Decimal(0)
