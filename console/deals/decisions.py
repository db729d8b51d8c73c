"""One deal and its decision: confirm, reject, appeal; an appeal ends as paid, with a lower amount, or rejected."""

from __future__ import annotations

import re
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import falcon.asgi

from console.deals.evidence import evidence_of, notice_of
from console.exchange import Request
from console.page import Page, own_path
from console.ui.values import queried
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.money import plainly
from kit.base.proto import datetime_from, most_of
from kit.rpc.errors import Refused, invalid
from kit.web.forms import Form

NOTE_MAX_CHARACTERS: Final = most_of(pb.OpenCustomerAppealRequest, "note")
AMOUNT: Final = re.compile(r"[0-9]{1,15}(\.[0-9]{1,2})?")
"""The amount that a link to a deal fills in, as that of a bank line does."""
MENDABLE: Final = frozenset(
    {"DEAL_STATE_CONFLICT", "NOT_DECIDED", "APPROVAL_REQUIRED", "APPROVAL_STATE_CONFLICT"}
)
"""The page of the deal shows who decided it, and which request waits."""
MISTYPED: Final = frozenset({"ADJUSTMENT_INVALID", "VALIDATION_ERROR"})


TWICE_WITHIN: Final = timedelta(seconds=10)
"""The same decision of the same person within this time is a key that was held, or a double click."""


@dataclass(frozen=True)
class Decision:
    """notice   of `NOTICES`
    ends_as  the sub_status of the deal after it
    """

    notice: str
    ends_as: str


CONFIRMED: Final = Decision("deal-confirmed", "successfully_paid")
ADJUSTED: Final = Decision("deal-confirmed", "completed_with_adjustment")


class DealPage(Page):
    """/deals/{deal_id}, and its decisions, which lead back to the list that they were made from."""

    link = "/deals"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, deal_id: str) -> None:
        received, note = req.get_param("received") or "", (req.get_param("note") or "")[:NOTE_MAX_CHARACTERS]
        received = received if AMOUNT.fullmatch(received) else ""
        given = {name: value for name, value in (("received", received), ("note", note)) if value}
        back = queried(f"/deals/{deal_id}", given)
        await self._show(req, resp, deal_id, received=received, note=note, back=back)

    on_head = on_get

    async def on_post_confirm(self, req: Request, resp: falcon.asgi.Response, deal_id: str) -> None:
        form = await self.form(req)
        change = self.deps.deals.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal_id))
        await self._leave(req, resp, form, deal_id, change, decision=CONFIRMED)

    async def on_post_reject(self, req: Request, resp: falcon.asgi.Response, deal_id: str) -> None:
        form = await self.form(req)
        request = pb.RejectDealRequest(
            deal_id=deal_id, note=_note(form), expected_sub_status=form.text("expected")
        )
        change = self.deps.deals.RejectDeal(request)
        decision = Decision("deal-rejected", "rejected_by_operator")
        await self._leave(req, resp, form, deal_id, change, decision=decision)

    async def on_post_appeal(self, req: Request, resp: falcon.asgi.Response, deal_id: str) -> None:
        form = await self.form(req)
        request = pb.OpenAppealRequest(deal_id=deal_id, note=_note(form))
        change = self.deps.deals.OpenAppeal(request)
        decision = Decision("deal-appealed", "opened_by_operator")
        await self._leave(req, resp, form, deal_id, change, decision=decision)

    async def on_post_resolve(self, req: Request, resp: falcon.asgi.Response, deal_id: str) -> None:
        form = await self.form(req)
        request = pb.ResolveAppealRequest(
            deal_id=deal_id, note=_note(form), expected_sub_status=form.text("expected")
        )
        outcome, decision = form.text("outcome"), CONFIRMED
        if outcome == "paid":
            request.paid = True
        elif outcome == "rejected":
            request.rejected, decision = True, Decision("deal-rejected", "appeal_rejected")
        elif outcome == "adjusted":
            await self._resolve_lower(req, resp, form, request)
            return
        change = self.deps.deals.ResolveAppeal(request)
        await self._leave(req, resp, form, deal_id, change, decision=decision)

    async def _resolve_lower(
        self, req: Request, resp: falcon.asgi.Response, form: Form, request: pb.ResolveAppealRequest
    ) -> None:
        """Shows what a lower amount counts as, then ends the appeal with it: the amount of the bank statement, or the
        part of the order that was paid.
        """
        deal_id, typed = request.deal_id, {each: plainly(form.text(each)) for each in ("received", "amount")}
        check = pb.CheckAdjustmentRequest(deal_id=deal_id)
        if typed["amount"]:
            request.adjusted_amount = check.adjusted_amount = typed["amount"]
        else:
            request.received_amount = check.received_amount = typed["received"]
        kept: dict[str, Any] = typed | {
            "note": request.note,
            "back": back_of(form),
            "next_id": form.text("next"),
        }
        try:
            if typed["amount"] and typed["received"]:
                raise invalid("VALIDATION_ERROR", "Give one of the two amounts", field="adjusted_amount")
            if form.text("sure"):
                change = self.deps.deals.ResolveAppeal(request)
                await self._leave(req, resp, form, deal_id, change, decision=ADJUSTED)
            else:
                counted = await self.deps.deals.CheckAdjustment(check)
                await self._show(req, resp, deal_id, counted=counted, **kept)
        except Refused as refused:
            if refused.reason not in MISTYPED:
                raise
            await self._show(req, resp, deal_id, refused=refused, **kept)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        deal_id: str,
        *,
        refused: Refused | None = None,
        counted: pb.CheckAdjustmentResponse | None = None,
        **typed: Any,
    ) -> None:
        nothing: dict[str, Any] = dict.fromkeys(("next_id", "received", "amount", "note"), "")
        values = nothing | {"back": f"/deals/{deal_id}"}
        evidence = await evidence_of(self, deal_id)
        values |= await notice_of(self, req)
        self.show(
            req, resp, "deals-deal", refused=refused, evidence=evidence, counted=counted, **values | typed
        )

    async def _leave(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        form: Form,
        deal_id: str,
        change: Awaitable[object],
        *,
        decision: Decision,
    ) -> None:
        """Leads to the list, which selects the next deal; after a refusal this one, which shows the reason. A form that
        was sent twice counts as done: a held key sends it again.
        """

        async def once() -> None:
            try:
                await change
            except Refused as refused:
                if refused.reason != "DEAL_STATE_CONFLICT" or not await self._did(req, deal_id, decision):
                    raise

        path = queried(back_of(form), {"decided": deal_id, "next": form.text("next")})
        await self.leave_after(resp, once(), path, notice=decision.notice, mendable=MENDABLE)

    async def _did(self, req: Request, deal_id: str, decision: Decision) -> bool:
        """Returns whether the person made the same decision a moment ago."""
        found = await self.deps.deals.ListDealStates(pb.ListDealStatesRequest(deal_ids=[deal_id]))
        since = SystemClock().now() - TWICE_WITHIN
        return any(
            (each.sub_status, each.actor) == (decision.ends_as, req.exchange.signed_in.person.email)
            and datetime_from(each.at) > since
            for each in found.states
        )


def back_of(form: Form) -> str:
    """Returns the address of the list, or of the deal, from which a decision is made."""
    path = own_path(form.text("back"))
    return path if path.startswith("/deals") else "/deals"


def _note(form: Form) -> str:
    return form.prose("note", most=NOTE_MAX_CHARACTERS)
