"""The logo of the session's merchant, seen on the customer's page."""

from __future__ import annotations

import falcon.asgi

from console.exchange import Request
from console.logo_page import LogoPage
from console.options import logo_of
from console.settings.pages import CHANGERS, MENDABLE, OwnMerchant
from console.settings.preview import preview_of
from console.ui.pages import only_for
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.rpc.errors import Refused


class OwnLogo(LogoPage, OwnMerchant):
    """/settings/logo, and /settings/logos/{logo}."""

    mendable = MENDABLE
    leads_to = "/settings"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, **thing: str) -> None:
        only_for(req, CHANGERS)
        await super().on_get(req, resp, **thing)

    on_head = on_get

    async def keep(self, req: Request, content: bytes) -> str:
        request = pb.KeepLogoRequest(logo=content, merchant_id=req.exchange.signed_in.merchant_id)
        return (await self.deps.merchants.KeepLogo(request)).logo

    async def kept(self, digest: str) -> pb.GetLogoResponse:
        return await self.deps.merchants.GetLogo(pb.GetLogoRequest(logo=digest))

    async def change(self, req: Request, content: bytes, was: str, **thing: str) -> None:
        request = pb.ConfigureOwnMerchantRequest(
            merchant_id=req.exchange.signed_in.merchant_id, logo=content, was=pb.MerchantOptions(logo=was)
        )
        await self.deps.merchants.ConfigureOwnMerchant(request)

    async def show_logo(
        self, req: Request, resp: falcon.asgi.Response, kept: str, refused: Refused | None, **thing: str
    ) -> None:
        merchant = await self.merchant(req)
        logo = logo_of(merchant)
        shown = "" if kept == logo else kept
        preview = preview_of(merchant.branding.colour, shown or logo)
        self.show_framing(req, resp, "settings-logo", refused=refused, logo=logo, kept=shown, preview=preview)
