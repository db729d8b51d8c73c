"""An owner, and the block of all its merchants."""

from __future__ import annotations

import falcon.asgi

from console.exchange import Request
from console.merchants.list import PER_CALL, state_of
from console.page import Page
from console.ui.pages import exports
from console.ui.values import queried
from fiatgate.merchants.v1 import merchants_pb2 as pb


class OwnerPage(Page):
    """/owners/{owner_id}: its newest merchants; the list of merchants has the others."""

    link = "/owners"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, owner_id: str) -> None:
        owner = await self._owner(owner_id)
        request = pb.ListMerchantsRequest(owner_email=owner.email, limit=PER_CALL)
        merchants = (await self.deps.merchants.ListMerchants(request)).merchants
        csv = queried("/merchants.csv", {"owner": owner.email}) if exports(req) else ""
        self.show(req, resp, "owner", owner=owner, merchants=merchants, state_of=state_of, csv=csv)

    on_head = on_get

    async def on_post_block(self, req: Request, resp: falcon.asgi.Response, owner_id: str) -> None:
        await self.form(req)
        request = pb.BlockOwnerRequest(email=(await self._owner(owner_id)).email)
        change = self.deps.merchants.BlockOwner(request)
        await self.leave_after(resp, change, f"/owners/{owner_id}", notice="owner-blocked", mendable=())

    async def on_post_unblock(self, req: Request, resp: falcon.asgi.Response, owner_id: str) -> None:
        await self.form(req)
        request = pb.UnblockOwnerRequest(email=(await self._owner(owner_id)).email)
        change = self.deps.merchants.UnblockOwner(request)
        await self.leave_after(resp, change, f"/owners/{owner_id}", notice="owner-unblocked", mendable=())

    async def _owner(self, owner_id: str) -> pb.Owner:
        return (await self.deps.merchants.GetOwner(pb.GetOwnerRequest(owner=owner_id))).owner
