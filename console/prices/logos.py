"""The logo of a payment method."""

from __future__ import annotations

import falcon.asgi

from console.exchange import Request
from console.logo_page import LogoPage
from console.prices.edits import MENDABLE
from console.prices.methods import catalog_with
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.rpc.errors import Refused


class MethodLogo(LogoPage):
    """/methods/{method_code}/logo, and /method-logos/{logo}."""

    link = "/methods"
    mendable = MENDABLE

    async def keep(self, req: Request, content: bytes) -> str:
        return (await self.deps.catalog.KeepLogo(pb.KeepLogoRequest(logo=content))).logo

    async def kept(self, digest: str) -> pb.GetLogoResponse:
        return await self.deps.catalog.GetLogo(pb.GetLogoRequest(logo=digest))

    async def change(self, req: Request, content: bytes, was: str, **thing: str) -> None:
        method = (await catalog_with(self, thing["method_code"]))[1]
        seen = pb.PaymentMethod()
        seen.CopyFrom(method)
        seen.logo = was
        if not was:
            seen.ClearField("logo")
        request = pb.SetPaymentMethodRequest(method=method, was=seen, logo=content)
        await self.deps.catalog.SetPaymentMethod(request)

    async def show_logo(
        self, req: Request, resp: falcon.asgi.Response, kept: str, refused: Refused | None, **thing: str
    ) -> None:
        method = (await catalog_with(self, thing["method_code"]))[1]
        shown = "" if kept == method.logo else kept
        self.show(req, resp, "method-logo", refused=refused, method=method, logo=method.logo, kept=shown)
