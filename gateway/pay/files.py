"""The files that the page loads: stylesheet, scripts, the merchant's colour."""

from functools import cache
from pathlib import Path
from typing import Final

import falcon.asgi

from gateway.exchange import Request
from gateway.pay.brand import stylesheet
from kit.rpc.errors import not_found
from kit.web.files import MEDIA_TYPES, Files, keep_for_ever

STATIC: Final = Path(__file__).parent / "static"


@cache
def static_files() -> Files:
    """Returns the files behind /pay-static/{version}/{name}."""
    return Files(STATIC)


class BrandResource:
    """GET /pay-brand/{name}: the stylesheet of the colour in its name."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response, name: str) -> None:
        content = stylesheet(name)
        if content is None:
            raise not_found("NOT_FOUND", "No such file")
        resp.content_type, resp.data = MEDIA_TYPES[".css"], content
        keep_for_ever(resp)


class ModalResource:
    """GET /pay-modal.js: the script with which a merchant shows the page above its own; see the file."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        static_files().by_name["modal.js"].answer(req, resp)
        resp.set_header("Cache-Control", "public, max-age=3600")
        resp.set_header("X-Content-Type-Options", "nosniff")
        resp.set_header("Cross-Origin-Resource-Policy", "cross-origin")
        resp.set_header("Access-Control-Allow-Origin", "*")
