"""The start page of the dashboard, and the choice of the merchant."""

import asyncio
from typing import Final

import falcon.asgi

from console.dashboard.first_steps import first_steps
from console.dashboard.numbers import numbers_of
from console.exchange import Request
from console.page import Page, ban_in, leave_for
from console.ui.words import PROBLEMS
from console.wiring import Deps
from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.rpc.errors import Refused

BANS: Final = {"banned": PROBLEMS["MERCHANT_BLOCKED"], "owner_blocked": PROBLEMS["OWNER_BLOCKED"]}
"""The sentence about a ban, by the word of `ban_in`."""


class HomePage(Page):
    """/: what needs attention, a new merchant's first steps, the balance, a period's figures, the newest payments."""

    def __init__(self, deps: Deps, *, public_url: str) -> None:
        super().__init__(deps)
        self._public_url = public_url

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        own = req.exchange.signed_in.merchant_id
        merchant, numbers = await asyncio.gather(self.merchant_of(own), numbers_of(self, req))
        name = merchant.name if merchant else ""
        steps = await first_steps(
            self, req, numbers["report"], merchant=merchant, keys=numbers["keys"], public_url=self._public_url
        )
        ban, guide = BANS.get(ban_in(merchant)), f"{self._public_url}/docs/guide"
        self.show(req, resp, "dashboard-home", name=name, ban=ban, steps=steps, guide=guide, **numbers)

    on_head = on_get


class MerchantPage(Page):
    """/merchant: a member of several merchants chooses the one that the session acts for."""

    needs_merchant = False

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        members_of = req.exchange.signed_in.person.memberships
        names = await self.names(*(each.merchant_id for each in members_of))
        self.show(req, resp, "merchant", names=names)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        request = pb.ChooseMerchantRequest(
            session_token=req.exchange.session_token,
            surface=self.deps.surface.kind,
            merchant_id=form.text("merchant_id"),
        )
        try:
            await self.deps.signin.ChooseMerchant(request)
        except Refused as refused:
            if refused.reason != "MERCHANT_NOT_FOUND":
                raise
            leave_for(resp, "/merchant", problem="merchant_not_found")
        else:
            leave_for(resp, "/")
