"""One deal and its decision: confirm, reject, appeal; an appeal ends as paid, with a lower amount, or rejected."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final

import falcon.asgi

from console.deals.evidence import evidence_of
from console.exchange import Request
from console.page import Page, own_path
from console.ui.values import queried
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.proto import most_of
from kit.rpc.errors import Refused
from kit.web.forms import Form

NOTE_MAX_CHARACTERS: Final = most_of(pb.OpenCustomerAppealRequest, "note")
MENDABLE: Final = frozenset({"DEAL_STATE_CONFLICT", "APPROVAL_REQUIRED", "APPROVAL_STATE_CONFLICT"})
"""The page of the deal shows who decided it, and which request waits."""
MISTYPED: Final = frozenset({"ADJUSTMENT_INVALID", "VALIDATION_ERROR"})


class DealPage(Page):
    """/deals/{deal_id}, and its decisions, which lead back to the list that they were made from."""

    link = "/deals"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, deal_id: str) -> None:
        await self._show(req, resp, deal_id)

    on_head = on_get

    async def on_post_confirm(self, req: Request, resp: falcon.asgi.Response, deal_id: str) -> None:
        form = await self.form(req)
        change = self.deps.deals.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal_id))
        await self._leave(resp, form, deal_id, change, notice="deal-confirmed")

    async def on_post_reject(self, req: Request, resp: falcon.asgi.Response, deal_id: str) -> None:
        form = await self.form(req)
        request = pb.RejectDealRequest(
            deal_id=deal_id, note=_note(form), expected_sub_status=form.text("expected")
        )
        await self._leave(resp, form, deal_id, self.deps.deals.RejectDeal(request), notice="deal-rejected")

    async def on_post_appeal(self, req: Request, resp: falcon.asgi.Response, deal_id: str) -> None:
        form = await self.form(req)
        request = pb.OpenAppealRequest(deal_id=deal_id, note=_note(form))
        await self._leave(resp, form, deal_id, self.deps.deals.OpenAppeal(request), notice="deal-appealed")

    async def on_post_resolve(self, req: Request, resp: falcon.asgi.Response, deal_id: str) -> None:
        form = await self.form(req)
        request = pb.ResolveAppealRequest(
            deal_id=deal_id, note=_note(form), expected_sub_status=form.text("expected")
        )
        outcome, amount = form.text("outcome"), form.text("amount").strip()
        if outcome == "paid":
            request.paid = True
        elif outcome == "rejected":
            request.rejected = True
        elif outcome == "adjusted":
            request.adjusted_amount = amount
        notice = "deal-rejected" if outcome == "rejected" else "deal-confirmed"
        try:
            await self._leave(resp, form, deal_id, self.deps.deals.ResolveAppeal(request), notice=notice)
        except Refused as refused:
            if refused.reason not in MISTYPED:
                raise
            typed = {
                "amount": amount,
                "note": _note(form),
                "back": back_of(form),
                "next_id": form.text("next"),
            }
            await self._show(req, resp, deal_id, refused=refused, **typed)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        deal_id: str,
        refused: Refused | None = None,
        **typed: str,
    ) -> None:
        values: dict[str, Any] = {"back": f"/deals/{deal_id}", "next_id": "", "amount": "", "note": ""}
        evidence = await evidence_of(self, deal_id)
        self.show(req, resp, "deals-deal", refused=refused, evidence=evidence, **values | typed)

    async def _leave(
        self,
        resp: falcon.asgi.Response,
        form: Form,
        deal_id: str,
        change: Awaitable[object],
        *,
        notice: str,
    ) -> None:
        """Leads to the list, which selects the next deal; after a refusal this one, which shows the reason."""
        path = queried(back_of(form), {"decided": deal_id, "next": form.text("next")})
        await self.leave_after(resp, change, path, notice=notice, mendable=MENDABLE)


def back_of(form: Form) -> str:
    """Returns the address of the list, or of the deal, from which a decision is made."""
    path = own_path(form.text("back"))
    return path if path.startswith("/deals") else "/deals"


def _note(form: Form) -> str:
    return form.prose("note", most=NOTE_MAX_CHARACTERS)
