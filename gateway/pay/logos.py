"""Logos of merchants and methods: from us, for a customer's browser tells no other host that somebody pays here."""

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final

import falcon.asgi

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.merchants.v1 import merchants_pb2
from gateway.exchange import Request
from gateway.wiring import Deps
from kit.errors import not_found

REMEMBERED: Final = 256  # of at most 32 KiB each, per worker

_DIGEST: Final = re.compile(r"[0-9a-f]{64}").fullmatch


class LogoResource:
    """GET /pay-logo/{owner}/{logo}: the name says the content, so it's kept for ever, here and in browsers."""

    def __init__(self, deps: Deps) -> None:
        self._ask: dict[str, Callable[[str], Awaitable[Any]]] = {
            "merchants": lambda logo: deps.merchants.GetLogo(merchants_pb2.GetLogoRequest(logo=logo)),
            "methods": lambda logo: deps.catalog.GetLogo(catalog_pb2.GetLogoRequest(logo=logo)),
        }
        self._known: OrderedDict[tuple[str, str], tuple[str, bytes]] = OrderedDict()

    async def on_get(self, req: Request, resp: falcon.asgi.Response, owner: str, logo: str) -> None:
        if owner not in self._ask or not _DIGEST(logo):
            raise not_found("NOT_FOUND", "No such file")
        known = self._known.get((owner, logo))
        if known is None:
            answer = await self._ask[owner](logo)
            known = answer.content_type, answer.content
            self._known[owner, logo] = known
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        resp.content_type, resp.data = known
        resp.set_headers(
            {
                "Cache-Control": "public, max-age=31536000, immutable",
                "X-Content-Type-Options": "nosniff",
                "Content-Security-Policy": "default-src 'none'",
            }
        )
