"""The files that the page loads: stylesheet, scripts, the merchant's colour."""

from collections import OrderedDict
from functools import cache
from pathlib import Path
from typing import Final

import falcon.asgi

from gateway.exchange import Request
from gateway.pay.brand import stylesheet
from kit.rpc.errors import not_found
from kit.web.files import MEDIA_TYPES, Files, keep_for_ever
from kit.web.walls.strangers import Strangers

CACHED_MAX: Final = 1024  # of 200 bytes each, per worker
STATIC: Final = Path(__file__).parent / "static"


@cache
def static_files() -> Files:
    """Returns the files behind /pay-static/{version}/{name}."""
    return Files(STATIC)


class BrandResource:
    """GET /pay-brand/{name}: the stylesheet of the colour in its name.

    Browsers ask for each colour once. One that is not remembered here takes a token of the client's network, as a
    payment that does not exist does.
    """

    def __init__(self, strangers: Strangers) -> None:
        self._strangers = strangers
        self._known: OrderedDict[str, bytes] = OrderedDict()

    async def on_get(self, req: Request, resp: falcon.asgi.Response, name: str) -> None:
        resp.content_type, resp.data = MEDIA_TYPES[".css"], await self._sheet(name, req.exchange.network)
        keep_for_ever(resp)

    async def _sheet(self, name: str, network: str) -> bytes:
        sheet = self._known.get(name)
        if sheet is None:
            sheet = stylesheet(name)
            if sheet is None:
                raise not_found("NOT_FOUND", "No such file")
            await self._strangers.pay(network)
            self._known[name] = sheet
            if len(self._known) > CACHED_MAX:
                self._known.popitem(last=False)
        return sheet


class ModalResource:
    """GET /pay-modal.js: the script with which a merchant shows the page above its own; see the file."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        static_files().by_name["modal.js"].answer(req, resp)
        resp.set_header("Cache-Control", "public, max-age=3600")
        resp.set_header("X-Content-Type-Options", "nosniff")
        resp.set_header("Cross-Origin-Resource-Policy", "cross-origin")
        resp.set_header("Access-Control-Allow-Origin", "*")
