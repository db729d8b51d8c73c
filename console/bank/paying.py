"""Deals that lines pay: the one that is proposed, or one that an operator names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Final

from console.calls import Outcome, or_none
from console.page import Page
from console.ui.values import word
from console.words.states import words_of
from fiatgate.bank.v1 import bank_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2, lines_pb2
from kit.base.ids import parse_id
from kit.rpc.errors import Refused, invalid, is_away, precondition

CONFIRMABLE: Final = (pb.TIER_CERTAIN, pb.TIER_CONFIRMED, pb.TIER_HINT)
"""The tiers whose line comes to the deal's amount."""
TOGETHER: Final = (pb.TIER_CERTAIN, pb.TIER_CONFIRMED)
"""Those that are confirmed several at once: a hint has no reference, so a person compares each."""
UNPAYABLE: Final = {
    "waiting": "pending at the bank, or not looked at yet",
    "matched": "used up",
    "reversed": "taken back by the bank",
    "outgoing": "money that went out",
    "used": "kept for a correction or a return",
}
"""Words for people about the states of lines that may not pay."""
REFUSALS: Final = frozenset(
    {"BANK_LINE_CONFLICT", "BANK_LINE_NOT_FOUND", "DEAL_STATE_CONFLICT", "DEAL_NOT_FOUND", "NOT_DECIDED"}
)


@asynccontextmanager
async def claimed(page: Page, line_ids: Sequence[str], *, anew: bool = False) -> AsyncIterator[list[pb.Line]]:
    """Gives the lines, which nobody else uses meanwhile. Afterwards bank fetches the payments by them and ends the
    claims; when it is unknown whether they paid, they end by themselves. Raises BANK_LINE_CONFLICT for one that may not
    pay, also when the page showed that it may.
    """
    claims = list[pb.ClaimLineResponse]()
    may_have_paid = False
    try:
        for id in line_ids:
            line = (await page.deps.bank.GetLine(pb.GetLineRequest(line_id=id))).line
            if not line.payable:
                state = "used" if line.used_for else word(line, "state")
                why = f"The line can’t pay: it is {UNPAYABLE.get(state, state)}"
                raise precondition("BANK_LINE_CONFLICT", why)
            claims.append(await page.deps.bank.ClaimLine(pb.ClaimLineRequest(line_id=id, anew=anew)))
        yield [each.line for each in claims]
    except Refused as refused:
        may_have_paid = is_away(refused)
        raise
    finally:
        for each in () if may_have_paid else claims:
            end = pb.ReleaseLineRequest(line_id=each.line.line_id, claimed_at=each.claimed_at)
            await or_none(page.deps.bank.ReleaseLine(end))


async def confirm(page: Page, line_id: str) -> str:
    """Confirms the deal that is proposed, or links the line to it when it was confirmed before. Returns the notice."""
    async with claimed(page, [line_id], anew=True) as (line,):
        if line.tier not in CONFIRMABLE or Decimal(line.left) != Decimal(line.deal_amount or 0):
            raise precondition("BANK_LINE_CONFLICT", "This line does not come to the amount of one open deal")
        parts = [lines_pb2.LinePart(line_id=line.line_id, amount=line.left, line_amount=line.amount)]
        return await _pay(page, line.deal_id, parts, is_paid=line.tier == pb.TIER_CONFIRMED)


def why(stayed: Outcome) -> str:
    """Returns why the line of this outcome did not pay."""
    state = stayed.refused and stayed.refused.metadata.get("sub_status")
    return f"The deal is {words_of(state)}." if state else stayed.sentence


async def link(page: Page, line_ids: Sequence[str], named: str) -> str:
    """Lets the lines pay the deal that is named by its reference or id, each with as much as is still due. Returns the
    notice about it.
    """
    deal = await _deal(page, named)
    due, parts = Decimal(deal.amount_fiat), []
    async with claimed(page, line_ids) as lines:
        for line in lines:
            if line.currency_code != deal.currency_code:
                message = f"The deal is in {deal.currency_code}, the line in {line.currency_code}"
                raise invalid("VALIDATION_ERROR", message, field="deal")
            if (amount := min(due, Decimal(line.left))) > 0:
                parts.append(
                    lines_pb2.LinePart(line_id=line.line_id, amount=f"{amount:f}", line_amount=line.amount)
                )
                due -= amount
        is_paid = deal.status == invoices_pb2.DEAL_STATUS_COMPLETED
        return await _pay(page, deal.deal_id, parts, is_paid=is_paid)


async def _pay(page: Page, deal_id: str, parts: Sequence[lines_pb2.LinePart], *, is_paid: bool) -> str:
    if is_paid:
        await page.deps.line_payments.LinkDeal(lines_pb2.LinkDealRequest(deal_id=deal_id, lines=parts))
        return "bank-line-linked"
    await page.deps.deals.ConfirmDeal(invoices_pb2.ConfirmDealRequest(deal_id=deal_id, lines=parts))
    return "bank-line-confirmed"


async def _deal(page: Page, named: str) -> invoices_pb2.Deal:
    """Returns the deal. Raises VALIDATION_ERROR unless one and only one has this reference or id."""
    request = invoices_pb2.ListDealsRequest(limit=2)
    if parse_id(named):
        request.deal_ids.append(named)
    else:
        request.reference = named
    try:
        found = list((await page.deps.deals.ListDeals(request)).deals)
    except Refused as refused:
        if refused.reason != "VALIDATION_ERROR":
            raise
        found = []
    if len(found) != 1:
        message = (
            "No deal has this reference or id"
            if not found
            else "Several deals had this reference: give the id"
        )
        raise invalid("VALIDATION_ERROR", message, field="deal")
    return found[0]
