"""The switch of new invoices and deals."""

from __future__ import annotations

import falcon.asgi

from console.exchange import Request
from console.page import Page
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.rpc.errors import invalid


class DealsSystemPage(Page):
    """/deals-system: whether new invoices and deals are accepted, and who decided that."""

    link = "/deals-system"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        system = await self.deps.deals.GetDealsSystem(pb.GetDealsSystemRequest())
        self.show(req, resp, "deals-system", system=system)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        wanted = (await self.form(req)).text("enabled")
        if wanted not in ("yes", "no"):
            raise invalid("VALIDATION_ERROR", "expected yes or no", field="enabled")
        enabled = wanted == "yes"
        await self.leave_after(
            resp,
            self.deps.deals.SetDealsSystem(pb.SetDealsSystemRequest(enabled=enabled)),
            "/deals-system",
            notice="deals-on" if enabled else "deals-off",
            mendable=(),
        )
