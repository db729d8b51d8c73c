"""The logo of a method: chosen, seen as customers will see it, then used."""

from __future__ import annotations

import re
from typing import Final

import falcon
import falcon.asgi

from console.exchange import Request
from console.page import Page, leave_for
from console.pictures import FILE_MAX_BYTES, answer_logo
from console.prices.edits import MENDABLE
from console.prices.methods import catalog_with
from fiatgate.catalog.v1 import catalog_pb2 as pb
from kit.rpc.errors import Refused, invalid

_DIGEST: Final = re.compile(r"[0-9a-f]{64}").fullmatch


class LogoPage(Page):
    """/methods/{method_code}/logo?kept=…: the present logo, and the one that was sent and may become it."""

    link = "/methods"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, method_code: str) -> None:
        kept = req.get_param("kept") or ""
        await self._show(req, resp, method_code, kept=kept if _DIGEST(kept) else "")

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response, method_code: str) -> None:
        """Keeps the picture of the form, and shows it."""
        try:
            form = await self.form(req, file_field="logo", file_max_bytes=FILE_MAX_BYTES)
            kept = (await self.deps.catalog.KeepLogo(pb.KeepLogoRequest(logo=form.file or b""))).logo
        except Refused as refused:
            if refused.reason not in ("VALIDATION_ERROR", "PAYLOAD_TOO_LARGE"):
                raise
            refused = invalid("VALIDATION_ERROR", refused.message, field="logo")
            await self._show(req, resp, method_code, refused=refused)
        else:
            leave_for(resp, f"/methods/{method_code}/logo", kept=kept)

    async def on_post_use(self, req: Request, resp: falcon.asgi.Response, method_code: str) -> None:
        form = await self.form(req)
        found = await self.deps.catalog.GetLogo(pb.GetLogoRequest(logo=form.text("logo")))
        await self._set(req, resp, method_code, found.content, was=form.text("was:logo"), notice="logo-used")

    async def on_post_remove(self, req: Request, resp: falcon.asgi.Response, method_code: str) -> None:
        form = await self.form(req)
        await self._set(req, resp, method_code, b"", was=form.text("was:logo"), notice="logo-removed")

    async def _set(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        method_code: str,
        content: bytes,
        *,
        was: str,
        notice: str,
    ) -> None:
        method = (await catalog_with(self, method_code))[1]
        seen = pb.PaymentMethod()
        seen.CopyFrom(method)
        seen.logo = was
        if not was:
            seen.ClearField("logo")
        request = pb.SetPaymentMethodRequest(method=method, was=seen, logo=content)
        try:
            await self.deps.catalog.SetPaymentMethod(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, method_code, refused=refused)
        else:
            leave_for(resp, f"/methods/{method_code}/logo", notice=notice)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        method_code: str,
        *,
        kept: str = "",
        refused: Refused | None = None,
    ) -> None:
        method = (await catalog_with(self, method_code))[1]
        shown = "" if kept == method.logo else kept
        self.show(req, resp, "method-logo", refused=refused, method=method, logo=method.logo, kept=shown)


class LogoPicture(Page):
    """/method-logos/{logo}: the name is the content's digest, so browsers keep it."""

    link = "/methods"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, logo: str) -> None:
        answer_logo(resp, await self.deps.catalog.GetLogo(pb.GetLogoRequest(logo=logo)))

    on_head = on_get
