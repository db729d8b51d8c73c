"""The customer's page as it would look, for a frame in the settings.

It is made by the templates, files and colours of the payment page itself. Nothing in it does anything: the browser runs
no script and sends no form of it (`sandbox`), and its links lead nowhere.
"""

from __future__ import annotations

import re
from typing import Final

import falcon.asgi

from console.exchange import Request
from console.page import Page
from fiatgate.merchants.v1 import merchants_pb2 as pb
from gateway.pay import brand, sample
from kit.rpc.errors import not_found
from kit.web.files import MEDIA_TYPES, keep_for_ever
from kit.web.pages import answer_html

NONE: Final = "none"
"""In the address: the page's own colour, no logo."""
_COLOUR: Final = re.compile(r"#([0-9a-fA-F]{6})").fullmatch
_IN_PATH: Final = re.compile(r"[0-9a-f]{6}").fullmatch
_DIGEST: Final = re.compile(r"[0-9a-f]{64}").fullmatch


def is_colour(text: str) -> bool:
    """Returns whether identity will take the text as a colour."""
    return _COLOUR(text) is not None


def preview_of(colour: str, logo: str) -> str:
    """Returns the address of the preview; a colour that is none, as typed halfway, counts as the page's own."""
    found = _COLOUR(colour)
    return f"/settings/preview/{found[1].lower() if found else NONE}/{logo or NONE}"


class PreviewPage(Page):
    """/settings/preview/{colour}/{logo}?lang=…"""

    link = "/settings"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, colour: str, logo: str) -> None:
        if not (colour == NONE or _IN_PATH(colour)) or not (logo == NONE or _DIGEST(logo)):
            raise not_found("NOT_FOUND", "There is no such preview")
        merchant_id = req.exchange.signed_in.merchant_id
        found = await self.deps.merchants.GetMerchant(pb.GetMerchantRequest(merchant_id=merchant_id))
        html = sample.page(
            requested=req.get_param("lang") or "",
            accepted=req.get_header("Accept-Language") or "",
            merchant_name=found.merchant.name,
            stylesheet="" if colour == NONE else f"/settings/colours/{brand.stylesheet_name(colour)}",
            logo="" if logo == NONE else f"/settings/logos/{logo}",
            prefix="/settings",
        )
        answer_html(req, resp, html, frame_origins=("'self'",))
        policy = resp.get_header("Content-Security-Policy")
        resp.set_header("Content-Security-Policy", f"{policy}; sandbox allow-same-origin")
        resp.set_header("X-Frame-Options", "SAMEORIGIN")

    on_head = on_get


class ColourSheet(Page):
    """/settings/colours/{name}: the stylesheet of the colour in its name."""

    link = "/settings"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, name: str) -> None:
        content = brand.stylesheet(name)
        if content is None:
            raise not_found("NOT_FOUND", "There is no such colour")
        resp.content_type, resp.data = MEDIA_TYPES[".css"], content
        keep_for_ever(resp)
        resp.set_header("Cache-Control", "private, max-age=31536000, immutable")

    on_head = on_get
