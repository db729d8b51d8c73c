"""Falcon's middleware: raises the refusal of `edge`, and finds the merchant of the key (docs/api.md#authentication)."""

from functools import partial
from typing import Final

import falcon
import falcon.asgi

from fiatgate.merchants.v1.merchants_pb2 import AuthenticateRequest, AuthenticateResponse
from gateway.http.exchange import Request
from gateway.walls.shared_calls import SharedCalls
from gateway.walls.strangers import KEYS
from gateway.wiring import Deps
from kit.rpc.errors import unauthenticated

MERCHANTS_PATHS: Final = "/api/"
OPEN_PATHS: Final = frozenset({"/api/v1/openapi.json"})  # the API's description, the same for all


class Authentication:
    """Every route under /api needs a key, by its template: no route can forget the check.

    The key is checked at every request and never cached, so that a deactivated key ends at once. An unknown route
    answers NOT_FOUND without checking the key: it has nothing to protect.
    """

    def __init__(self, deps: Deps) -> None:
        self._merchants = deps.merchants
        self._shared = SharedCalls[str, AuthenticateResponse]()
        self._rate_limit = deps.rate_limit
        self._strangers = deps.strangers

    async def process_request(self, req: Request, resp: falcon.asgi.Response) -> None:
        exchange = req.exchange
        if exchange.refused is not None:
            raise exchange.refused
        if req.path.startswith("//"):
            raise falcon.HTTPNotFound  # Falcon ignores slashes before the first segment
        if req.method not in falcon.HTTP_METHODS:
            # Falcon answers an unknown method with a bare 400; TRACE, which no route has, gets 405 and Allow.
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
        answer = await self._strangers.ask(KEYS, req.exchange.network, key, partial(self._authenticated, key))
        req.exchange.merchant = answer.merchant
        req.exchange.key_id = answer.key_id
        if self._rate_limit is not None:
            allowance = self._rate_limit.take(answer.key_id)
            resp.set_headers(allowance.headers())
            if not allowance.granted:
                raise allowance.refusal()

    async def _authenticated(self, key: str) -> AuthenticateResponse:
        request = AuthenticateRequest(api_key=key)
        return await self._shared.answer(key, partial(self._merchants.Authenticate, request))
