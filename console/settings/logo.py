"""The logo of the session's merchant: chosen, seen on the customer's page, then used."""

from __future__ import annotations

import re
from typing import Final

import falcon.asgi

from console.exchange import Request
from console.options import logo_of
from console.page import Page, leave_for
from console.pictures import FILE_MAX_BYTES, answer_logo
from console.settings.pages import CHANGERS, MENDABLE, OwnMerchant
from console.settings.preview import preview_of
from console.ui.pages import only_for
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.rpc.errors import Refused

_DIGEST: Final = re.compile(r"[0-9a-f]{64}").fullmatch


class LogoPage(OwnMerchant):
    """/settings/logo?kept=…: the present logo, and the one that was sent and may become it."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, CHANGERS)
        kept = req.get_param("kept") or ""
        await self._show(req, resp, kept=kept if _DIGEST(kept) else "")

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Keeps the picture of the form, and shows it."""
        try:
            form = await self.form(req, file_field="logo", file_max_bytes=FILE_MAX_BYTES)
            merchant_id = req.exchange.signed_in.merchant_id
            request = pb.KeepLogoRequest(logo=form.file or b"", merchant_id=merchant_id)
            kept = (await self.deps.merchants.KeepLogo(request)).logo
        except Refused as refused:
            if refused.reason != "VALIDATION_ERROR":
                raise
            await self._show(req, resp, refused=refused)
        else:
            leave_for(resp, "/settings/logo", kept=kept)

    async def on_post_use(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        found = await self.deps.merchants.GetLogo(pb.GetLogoRequest(logo=form.text("logo")))
        await self._set(req, resp, found.content, was=form.text("was:logo"), notice="logo-used")

    async def on_post_remove(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        await self._set(req, resp, b"", was=form.text("was:logo"), notice="logo-removed")

    async def _set(
        self, req: Request, resp: falcon.asgi.Response, content: bytes, *, was: str, notice: str
    ) -> None:
        request = pb.ConfigureOwnMerchantRequest(
            merchant_id=req.exchange.signed_in.merchant_id, logo=content, was=pb.MerchantOptions(logo=was)
        )
        try:
            await self.deps.merchants.ConfigureOwnMerchant(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, refused=refused)
        else:
            leave_for(resp, "/settings", notice=notice)

    async def _show(
        self, req: Request, resp: falcon.asgi.Response, *, kept: str = "", refused: Refused | None = None
    ) -> None:
        merchant = await self.merchant(req)
        logo = logo_of(merchant)
        shown = "" if kept == logo else kept
        self.show_framing(
            req,
            resp,
            "settings-logo",
            refused=refused,
            logo=logo,
            kept=shown,
            preview=preview_of(merchant.branding.colour, shown or logo),
        )


class LogoPicture(Page):
    """/settings/logos/{logo}: the name is the content's digest, so browsers keep it."""

    link = "/settings"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, logo: str) -> None:
        answer_logo(resp, await self.deps.merchants.GetLogo(pb.GetLogoRequest(logo=logo)))

    on_head = on_get
