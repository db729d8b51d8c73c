"""Falcon's middleware: finds the merchant or connector of a key (docs/api.md#authentication, docs/feed.md)."""

from functools import partial
from typing import TYPE_CHECKING, Final

import falcon.asgi

from fiatgate.bank.v1.feed_pb2 import FindConnectorRequest, FindConnectorResponse
from fiatgate.merchants.v1.merchants_pb2 import AuthenticateRequest, AuthenticateResponse
from gateway.access.leases import KeyLeases
from gateway.access.limits import RateLimit
from gateway.access.scopes import require_scope
from gateway.exchange import Request
from gateway.walls.shared_calls import SharedCalls
from gateway.walls.strangers import CONNECTORS, KEYS
from kit.rpc.errors import denied, unauthenticated
from kit.web.walls.strangers import Strangers

if TYPE_CHECKING:  # exists for type checkers only
    from fiatgate.bank.v1.feed_pb2_grpc import FeedServiceAsyncStub
    from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceAsyncStub

MERCHANTS_PATHS: Final = "/api/"
CONNECTORS_PATHS: Final = "/feed/"
OPEN_PATHS: Final = frozenset({"/api/v1/openapi.json"})  # the API's description, the same for all


class Authentication:
    """Every route under /api and /feed needs a key, by its template: no route can forget the check.

    A merchant's key is checked with identity unless its lease lasts (`leases`), a connector's with bank each time. An
    unknown route answers NOT_FOUND without checking the key: it has nothing to protect.
    """

    def __init__(
        self,
        merchants: "MerchantsServiceAsyncStub",
        feed: "FeedServiceAsyncStub",
        rate_limit: RateLimit | None,
        strangers: Strangers,
        *,
        is_test: bool,
    ) -> None:
        self._merchants = merchants
        self._feed = feed
        self._leases = KeyLeases()
        self._shared = SharedCalls[str, AuthenticateResponse]()
        self._rate_limit = rate_limit
        self._strangers = strangers
        self._wrong_mode = "fg_live_" if is_test else "fg_test_"

    async def process_resource(
        self, req: Request, resp: falcon.asgi.Response, resource: object, params: object
    ) -> None:
        route = req.uri_template or ""
        if not route.startswith((MERCHANTS_PATHS, CONNECTORS_PATHS)) or route in OPEN_PATHS:
            return
        key = (req.get_header("X-Api-Key") or "").strip(" \t")  # RFC 9110, 5.5: no part of the value
        if not key:
            raise unauthenticated("API_KEY_MISSING", "The X-Api-Key header is missing or empty")
        if route.startswith(CONNECTORS_PATHS):
            await self._find_connector(req, key)
        else:
            await self._find_merchant(req, key)
        if self._rate_limit is not None:
            allowance = self._rate_limit.take(req.exchange.key_id)
            resp.set_headers(allowance.headers())
            if not allowance.granted:
                raise allowance.refusal()
        require_scope(req.exchange.scopes, route, req.method)

    async def _find_merchant(self, req: Request, key: str) -> None:
        if key.startswith(self._wrong_mode):
            raise denied("API_KEY_WRONG_MODE", "The API key is one of the other mode: live or test")
        answer = self._leases.find(key)
        if answer is None:
            question = partial(self._shared.answer, key, partial(self._authenticated, key))
            answer = await self._strangers.ask(KEYS, req.exchange.network, key, question)
        req.exchange.merchant = answer.merchant
        req.exchange.key_id = answer.key_id
        req.exchange.scopes = answer.scopes

    async def _find_connector(self, req: Request, key: str) -> None:
        async def question() -> FindConnectorResponse:
            return await self._feed.FindConnector(FindConnectorRequest(key=key))

        answer = await self._strangers.ask(CONNECTORS, req.exchange.network, key, question)
        req.exchange.connector_id = req.exchange.key_id = answer.connector_id

    async def process_response(
        self, req: Request, resp: falcon.asgi.Response, resource: object, req_succeeded: bool
    ) -> None:
        if self._rate_limit is not None and req.exchange.key_id and req.exchange.body:
            allowance = self._rate_limit.count_body(req.exchange.key_id, len(req.exchange.body))
            resp.set_headers(allowance.headers())

    async def _authenticated(self, key: str) -> AuthenticateResponse:
        # The call before this one, for which the request waited, may have brought the lease.
        leased = self._leases.find(key)
        if leased is not None:
            return leased
        request = AuthenticateRequest(api_key=key)
        return await self._leases.fetch(key, partial(self._merchants.Authenticate, request))
