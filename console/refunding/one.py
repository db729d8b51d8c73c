"""One refund of the session's merchant: its money and account, its history, the account that is missing, its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import falcon.asgi

from console.calls import invoices_of
from console.exchange import Request
from console.page import Page, leave_for
from console.ui.acts import entry_of
from console.ui.values import word
from console.wiring import Deps
from console.words.refunds import ACCOUNT_KINDS, account_in, history
from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from kit.rpc.errors import Refused

MENDABLE: Final = frozenset(
    {"VALIDATION_ERROR", "REFUND_STATE_CONFLICT", "REFUND_INVALID", "MERCHANT_BLOCKED", "OWNER_BLOCKED"}
)
TYPED: Final = ("account_kind", "account", "holder", "bank")


class RefundPage(Page):
    """/refunds/{refund_id}, and the two steps of a member."""

    link = "/refunds"

    def __init__(self, deps: Deps, *, public_url: str) -> None:
        super().__init__(deps)
        self._public_url = public_url

    async def on_get(self, req: Request, resp: falcon.asgi.Response, refund_id: str) -> None:
        await self._show(req, resp, refund_id, dict.fromkeys(TYPED, ""))

    on_head = on_get

    async def on_post_cancel(self, req: Request, resp: falcon.asgi.Response, refund_id: str) -> None:
        await self.form(req)
        change = self.deps.refunds.CancelRefund(pb.CancelRefundRequest(refund_id=refund_id))
        path = f"/refunds/{refund_id}"
        await self.leave_after(resp, change, path, notice="refund-canceled", mendable=MENDABLE)

    async def on_post_account(self, req: Request, resp: falcon.asgi.Response, refund_id: str) -> None:
        form = await self.form(req)
        typed = {name: form.line(name, most=200) for name in TYPED}
        request = pb.SetRefundAccountRequest(refund_id=refund_id, account=account_in(typed))
        try:
            await self.deps.refunds.SetRefundAccount(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, refund_id, typed, refused=refused)
        else:
            leave_for(resp, f"/refunds/{refund_id}", notice="refund-account-given")

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        refund_id: str,
        typed: Mapping[str, str],
        *,
        refused: Refused | None = None,
    ) -> None:
        story = await self.deps.refunds.GetRefund(pb.GetRefundRequest(refund_id=refund_id))
        refund = story.refund
        own = req.exchange.signed_in.merchant_id
        orders = await invoices_of(self.deps.deals, [refund.invoice_id], merchant_id=own) or {}
        self.show(
            req,
            resp,
            "refunding-one",
            refused=refused,
            refund=refund,
            state=word(refund, "status"),
            invoice=orders.get(refund.invoice_id),
            entries=[entry_of(each) for each in history(story)],
            typed=typed,
            kinds=ACCOUNT_KINDS,
            pay=f"{self._public_url}/pay/{refund.invoice_id}",
        )
