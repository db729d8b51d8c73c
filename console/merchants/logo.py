"""The logo of a merchant: chosen, seen as customers will see it, then used."""

from __future__ import annotations

import re
from typing import Final

import falcon
import falcon.asgi

from console.exchange import Request
from console.merchants.merchant import MENDABLE, OneMerchant
from console.options import logo_of
from console.page import Page, leave_for
from console.pictures import FILE_MAX_BYTES, answer_logo
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.rpc.errors import Refused

_DIGEST: Final = re.compile(r"[0-9a-f]{64}").fullmatch


class LogoPage(OneMerchant):
    """/merchants/{merchant_id}/logo?kept=…: the present logo, and the one that was sent and may become it."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        kept = req.get_param("kept") or ""
        await self._show(req, resp, merchant_id, kept=kept if _DIGEST(kept) else "")

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        """Keeps the picture of the form, and shows it."""
        try:
            form = await self.form(req, file_field="logo", file_max_bytes=FILE_MAX_BYTES)
            request = pb.KeepLogoRequest(logo=form.file or b"")
            kept = (await self.deps.merchants.KeepLogo(request)).logo
        except Refused as refused:
            if refused.reason != "VALIDATION_ERROR":
                raise
            await self._show(req, resp, merchant_id, refused=refused)
        else:
            leave_for(resp, f"/merchants/{merchant_id}/logo", kept=kept)

    async def on_post_use(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        form = await self.form(req)
        found = await self.deps.merchants.GetLogo(pb.GetLogoRequest(logo=form.text("logo")))
        await self._set(req, resp, merchant_id, found.content, was=form.text("was:logo"), notice="logo-used")

    async def on_post_remove(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        form = await self.form(req)
        await self._set(req, resp, merchant_id, b"", was=form.text("was:logo"), notice="logo-removed")

    async def _set(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        merchant_id: str,
        content: bytes,
        *,
        was: str,
        notice: str,
    ) -> None:
        request = pb.ConfigureMerchantRequest(
            merchant_id=merchant_id, logo=content, was=pb.MerchantOptions(logo=was)
        )
        try:
            await self.deps.merchants.ConfigureMerchant(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, merchant_id, refused=refused)
        else:
            leave_for(resp, f"/merchants/{merchant_id}/logo", notice=notice)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        merchant_id: str,
        *,
        kept: str = "",
        refused: Refused | None = None,
    ) -> None:
        merchant = await self.merchant(merchant_id)
        logo = logo_of(merchant)
        self.show_merchant(
            req,
            resp,
            "merchant-logo",
            merchant,
            refused=refused,
            logo=logo,
            kept="" if kept == logo else kept,
        )


class LogoPicture(Page):
    """/merchants/logos/{logo}: the name is the content's digest, so browsers keep it."""

    link = "/merchants"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, logo: str) -> None:
        answer_logo(resp, await self.deps.merchants.GetLogo(pb.GetLogoRequest(logo=logo)))

    on_head = on_get
