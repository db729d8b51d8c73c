"""Logos of merchants and methods, served from here, so that no other host learns that a browser's owner pays here."""

import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final

import falcon.asgi

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.merchants.v1 import merchants_pb2
from gateway.exchange import Request
from gateway.wiring import Deps
from kit.rpc.errors import not_found
from kit.web.files import keep_for_ever
from kit.web.walls import turned_away
from kit.web.walls.buckets import Buckets

CACHED_MAX: Final = 1024  # of a few KiB each, per worker

_DIGEST: Final = re.compile(r"[0-9a-f]{64}").fullmatch


class LogoResource:
    """GET /pay-logo/{owner}/{logo}: the name is the content's digest, so it is kept for ever, here and in browsers.

    A logo that is not cached costs a query, and there are more possible names than the cache holds. So a client's
    network may request as many uncached names as pages of one payment. Behind a proxy that hides its clients they all
    count as one client. A cached logo is never refused.
    """

    def __init__(self, deps: Deps) -> None:
        self._get: dict[str, Callable[[str], Awaitable[Any]]] = {
            "merchants": lambda logo: deps.merchants.GetLogo(merchants_pb2.GetLogoRequest(logo=logo)),
            "methods": lambda logo: deps.catalog.GetLogo(catalog_pb2.GetLogoRequest(logo=logo)),
        }
        self._known: OrderedDict[tuple[str, str], tuple[str, bytes]] = OrderedDict()
        self._unknown = Buckets(deps.settings.page_requests_per_minute)
        turned_away.begin("logos")

    async def on_get(self, req: Request, resp: falcon.asgi.Response, owner: str, logo: str) -> None:
        if owner not in self._get or not _DIGEST(logo):
            raise not_found("NOT_FOUND", "No such file")
        resp.content_type, resp.data = await self._content(owner, logo, network=req.exchange.network)
        keep_for_ever(resp)
        resp.set_header("Content-Security-Policy", "default-src 'none'")

    async def _content(self, owner: str, logo: str, *, network: str) -> tuple[str, bytes]:
        known = self._known.get((owner, logo))
        if known is None:
            if not self._unknown.take(network):
                turned_away.count("logos")
                raise self._unknown.refusal()
            answer = await self._get[owner](logo)
            known = self._known[owner, logo] = answer.content_type, answer.content
            if len(self._known) > CACHED_MAX:
                self._known.popitem(last=False)
        return known
