"""Falcon's middleware: raises what `edge` refused, and finds the merchant of the key (docs/api.md#authentication)."""

from typing import Final

import falcon
import falcon.asgi

from gateway.exchange import Request
from gateway.keys import Keys
from gateway.walls.strangers import KEYS
from gateway.wiring import Deps
from kit.errors import unauthenticated

MERCHANTS_PATHS: Final = "/api/"
OPEN_PATHS: Final = frozenset({"/api/v1/openapi.json"})  # what describes them; the same for everyone


class Authentication:
    """Every route under /api needs a key, by its template: a route that forgets to ask for one can't exist.

    Asked at every request and never remembered, so that a deactivated key ends with the request before. An unknown
    route says NOT_FOUND without looking at the key: there is nothing behind it to protect.
    """

    def __init__(self, deps: Deps) -> None:
        self._keys = Keys(deps.merchants)
        self._rate_limit = deps.rate_limit
        self._strangers = deps.strangers

    async def process_request(self, req: Request, resp: falcon.asgi.Response) -> None:
        exchange = req.exchange
        if exchange.refused is not None:
            raise exchange.refused
        if req.path.startswith("//"):
            raise falcon.HTTPNotFound  # Falcon alone overlooks slashes before the first segment
        if req.method not in falcon.HTTP_METHODS:
            # Falcon answers a method it never heard of with a bare 400; one that no route takes gets 405 and Allow.
            req.method = "TRACE"

    async def process_resource(
        self, req: Request, resp: falcon.asgi.Response, resource: object, params: object
    ) -> None:
        route = req.uri_template or ""
        if not route.startswith(MERCHANTS_PATHS) or route in OPEN_PATHS:
            return
        key = req.get_header("X-Api-Key")
        if not key:
            raise unauthenticated("API_KEY_MISSING", "The X-Api-Key header is missing or empty")
        answer = await self._strangers.ask(
            KEYS, req.exchange.network, key, lambda: self._keys.authenticate(key)
        )
        req.exchange.merchant = answer.merchant
        req.exchange.key_id = answer.key_id
        if self._rate_limit is not None:
            allowance = self._rate_limit.take(answer.key_id)
            resp.set_headers(allowance.headers())
            if not allowance.granted:
                raise allowance.refusal()
