"""The logo of a merchant."""

from __future__ import annotations

import falcon.asgi

from console.exchange import Request
from console.logo_page import LogoPage
from console.merchants.merchant import MENDABLE, OneMerchant
from console.options import logo_of
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.rpc.errors import Refused


class MerchantLogo(LogoPage, OneMerchant):
    """/merchants/{merchant_id}/logo, and /merchants/logos/{logo}."""

    mendable = MENDABLE

    async def keep(self, req: Request, content: bytes) -> str:
        return (await self.deps.merchants.KeepLogo(pb.KeepLogoRequest(logo=content))).logo

    async def kept(self, digest: str) -> pb.GetLogoResponse:
        return await self.deps.merchants.GetLogo(pb.GetLogoRequest(logo=digest))

    async def change(self, req: Request, content: bytes, was: str, **thing: str) -> None:
        seen = pb.MerchantOptions(logo=was)
        request = pb.ConfigureMerchantRequest(merchant_id=thing["merchant_id"], logo=content, was=seen)
        await self.deps.merchants.ConfigureMerchant(request)

    async def show_logo(
        self, req: Request, resp: falcon.asgi.Response, kept: str, refused: Refused | None, **thing: str
    ) -> None:
        merchant = await self.merchant(thing["merchant_id"])
        logo = logo_of(merchant)
        shown = "" if kept == logo else kept
        self.show_merchant(req, resp, "merchant-logo", merchant, refused=refused, logo=logo, kept=shown)
