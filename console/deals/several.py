"""Several deals at once, where that is safe: money that did not come is rejected, deals in doubt become appeals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import falcon.asgi

from console.calls import each_of, or_none
from console.deals.decisions import NOTE_MAX_CHARACTERS, back_of
from console.deals.queue import Listed
from console.deals.words import last_step
from console.exchange import Request
from console.page import Page, leave_for
from console.words.deals import AWAITING_PAYMENT, OVERDUE
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.rpc.errors import invalid

DEALS_MOST: Final = 200
BESIDE: Final = frozenset({"DEAL_STATE_CONFLICT", "DEAL_NOT_FOUND"})
"""Refusals of one deal, beside which the others go on."""
NOTICES: Final[Mapping[str, str]] = {"reject": "deals-rejected", "appeal": "deals-appealed"}


@dataclass(frozen=True)
class Left:
    """A deal that stays as it is, and the reason."""

    row: Listed
    reason: str


class SeveralPage(Page):
    """/deals/several: asks once, with the number and the deals, then decides each."""

    link = "/deals"

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        act, ids = form.text("act"), list(dict.fromkeys(form.all("deal")))[:DEALS_MOST]
        if act not in NOTICES:
            raise invalid("VALIDATION_ERROR", "Expected reject or appeal", field="act")
        back = back_of(form)
        if not ids:
            leave_for(resp, back, problem="no_deals_ticked")
            return
        listed = await self._listed(ids)
        fitting = [row for row in listed if fits(row.deal, act)]
        left = [Left(row, _reason(act)) for row in listed if not fits(row.deal, act)]
        note = form.prose("note", most=NOTE_MAX_CHARACTERS)
        if form.text("sure"):
            left = await self._decided(fitting, act, note) + left
            if not left:
                leave_for(resp, back, notice=NOTICES[act])
                return
        names = await self.names(*(row.deal.merchant_id for row in listed))
        failed = {each.row.deal.deal_id for each in left}
        rows = [row for row in fitting if row.deal.deal_id not in failed]
        shown: dict[str, Any] = {
            "act": act,
            "rows": rows,
            "left": left,
            "back": back,
            "names": names,
            "note": note,
        }
        self.show(req, resp, "deals-several", done=bool(form.text("sure")), **shown)

    async def _listed(self, ids: Sequence[str]) -> Sequence[Listed]:
        request = pb.ListDealsRequest(deal_ids=ids, limit=len(ids), oldest_first=True)
        answer = await self.deps.deals.ListDeals(request)
        return [Listed(*each) for each in zip(answer.deals, answer.contexts, strict=True)]

    async def _decided(self, rows: Sequence[Listed], act: str, note: str) -> list[Left]:
        """Decides each deal, and returns those that stayed as they were, with the reason."""
        of = {row.deal.deal_id: row for row in rows}
        outcomes = await each_of(list(of), lambda id: self._decide(of[id].deal, act, note), beside=BESIDE)
        stayed = [each for each in outcomes if not each.is_done]
        if not stayed:
            return []
        request = pb.ListDealStatesRequest(deal_ids=[each.id for each in stayed])
        found = await or_none(self.deps.deals.ListDealStates(request))
        steps = {each.deal_id: last_step(each) for each in found.states} if found else {}
        return [
            Left(of[each.id], steps.get(each.id, each.sentence) if each.refused else each.sentence)
            for each in stayed
        ]

    async def _decide(self, deal: pb.Deal, act: str, note: str) -> object:
        """Decides one deal, if it is still as it was when this request read it; `fits` has checked that state."""
        deals, id, seen = self.deps.deals, deal.deal_id, deal.sub_status
        if act == "appeal":
            return await deals.OpenAppeal(pb.OpenAppealRequest(deal_id=id, note=note))
        if deal.status == pb.DEAL_STATUS_APPEAL:
            request = pb.ResolveAppealRequest(deal_id=id, rejected=True, note=note, expected_sub_status=seen)
            return await deals.ResolveAppeal(request)
        return await deals.RejectDeal(pb.RejectDealRequest(deal_id=id, note=note, expected_sub_status=seen))


def fits(deal: pb.Deal, act: str) -> bool:
    """Returns whether the act is safe for many deals at once. Deals that customers marked paid or appealed are rejected
    one by one, with their evidence.
    """
    if act == "appeal":
        return deal.status == pb.DEAL_STATUS_PENDING
    return deal.sub_status in (AWAITING_PAYMENT, OVERDUE)


def _reason(act: str) -> str:
    if act == "appeal":
        return "Only a deal that waits for its payment or its confirmation can become an appeal."
    return "Only deals that are not paid yet or overdue are rejected together: decide this one beside its evidence."
