"""The base of the pages of a logo: chosen, seen as customers will see it, then used."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import ClassVar, Final

import falcon
import falcon.asgi

from console.exchange import Request
from console.page import App, Page, leave_for
from console.pictures import FILE_MAX_BYTES, answer_logo
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.merchants.v1 import merchants_pb2
from kit.rpc.errors import Refused, invalid

_DIGEST: Final = re.compile(r"[0-9a-f]{64}").fullmatch


class LogoPage(Page, ABC):
    """…/logo?kept=…: the present logo, and the one that was sent and may become it; and all pictures by their digest.

    Fields of the path name the thing whose logo it is.

    mendable  the reasons of refusals that the page shows
    leads_to  the page after a change; empty: this one
    """

    mendable: ClassVar[Collection[str]]
    leads_to: ClassVar[str] = ""

    @abstractmethod
    async def keep(self, req: Request, content: bytes) -> str:
        """Keeps a picture for a while, and returns its digest."""

    @abstractmethod
    async def kept(self, digest: str) -> merchants_pb2.GetLogoResponse | catalog_pb2.GetLogoResponse:
        """Returns the picture with this digest. Raises NOT_FOUND."""

    @abstractmethod
    async def change(self, req: Request, content: bytes, was: str, **thing: str) -> None:
        """Sets the logo, or removes it, if it is still `was`."""

    @abstractmethod
    async def show_logo(
        self, req: Request, resp: falcon.asgi.Response, kept: str, refused: Refused | None, **thing: str
    ) -> None:
        """Answers with the page."""

    def add_logo_to(self, app: App, path: str, pictures: str) -> None:
        """Adds the addresses of the page, and that of a picture."""
        app.add_route(path, self)
        app.add_route(f"{path}/use", self, suffix="use")
        app.add_route(f"{path}/remove", self, suffix="remove")
        app.add_route(f"{pictures}/{{logo}}", self, suffix="picture")

    async def on_get(self, req: Request, resp: falcon.asgi.Response, **thing: str) -> None:
        kept = req.get_param("kept") or ""
        await self.show_logo(req, resp, kept if _DIGEST(kept) else "", None, **thing)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response, **thing: str) -> None:
        """Keeps the picture of the form, and shows it."""
        try:
            form = await self.form(req, file_field="logo", file_max_bytes=FILE_MAX_BYTES)
            kept = await self.keep(req, form.file or b"")
        except Refused as refused:
            if refused.reason not in ("VALIDATION_ERROR", "PAYLOAD_TOO_LARGE"):
                raise
            refused = invalid("VALIDATION_ERROR", refused.message, field="logo")
            await self.show_logo(req, resp, "", refused, **thing)
        else:
            leave_for(resp, req.path, kept=kept)

    async def on_post_use(self, req: Request, resp: falcon.asgi.Response, **thing: str) -> None:
        form = await self.form(req)
        content = (await self.kept(form.text("logo"))).content
        await self._set(req, resp, content, form.text("was:logo"), "logo-used", **thing)

    async def on_post_remove(self, req: Request, resp: falcon.asgi.Response, **thing: str) -> None:
        form = await self.form(req)
        await self._set(req, resp, b"", form.text("was:logo"), "logo-removed", **thing)

    async def on_get_picture(self, req: Request, resp: falcon.asgi.Response, logo: str) -> None:
        """Answers with the picture: its name is the content's digest, so browsers keep it."""
        answer_logo(resp, await self.kept(logo))

    on_head_picture = on_get_picture

    async def _set(
        self, req: Request, resp: falcon.asgi.Response, content: bytes, was: str, notice: str, **thing: str
    ) -> None:
        try:
            await self.change(req, content, was, **thing)
        except Refused as refused:
            if refused.reason not in self.mendable:
                raise
            await self.show_logo(req, resp, "", refused, **thing)
        else:
            leave_for(resp, self.leads_to or req.path.rpartition("/")[0], notice=notice)
