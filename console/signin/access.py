"""Falcon's middleware before every page: rate, own pages only, session, actor token, roles of the navigation.

Each request with a session makes one call of identity, which returns the person and a token for one request. So the end
of a session, a disabled person and changed roles count from the next request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from functools import partial
from typing import Final

import falcon
import falcon.asgi

from console.calls import or_none
from console.exchange import Request
from console.page import OtherMerchant, Page, leave_for
from console.signin.cookie import SessionCookie
from console.strangers import SESSIONS
from console.wiring import Deps
from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.merchants.v1 import merchants_pb2
from kit.rpc.actors import carry_token
from kit.rpc.errors import Refused, denied
from kit.web.forms import sent_by_own_page
from kit.web.walls import turned_away
from kit.web.walls.buckets import Buckets

SEEN_MOST: Final = 10_000
"""Sessions that a worker remembers; the longest unused are forgotten."""

_READS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class SignInFirst(Exception):
    """The page needs a session, and the request has none that is alive."""


class ChooseMerchantFirst(Exception):
    """The page needs a merchant, and the person is a member of several."""


class Access:
    """The checks of one worker.

    A person has a limit of requests, and a network one for its requests without a session: people of one office share
    an address. The first request of a session counts for the network, because only its answer tells that it is one.
    """

    def __init__(self, deps: Deps) -> None:
        self._deps = deps
        self._cookie = SessionCookie(deps.surface, is_https=deps.pages.is_https)
        self._networks = Buckets(deps.settings.requests_per_minute)
        self._people = Buckets(deps.settings.requests_per_minute)
        self._seen: OrderedDict[str, str] = OrderedDict()  # sessions by token, each with its person
        turned_away.begin("page")

    async def process_resource(
        self, req: Request, resp: falcon.asgi.Response, resource: object, params: object
    ) -> None:
        if not isinstance(resource, Page):
            return
        token = req.exchange.session_token = self._cookie.of(req)
        person = self._seen.get(token)
        if person is None:
            self._take(self._networks, req.exchange.network)
        else:
            self._take(self._people, person)
        if req.method not in _READS and not sent_by_own_page(req, self._deps.pages.origin):
            raise denied("VALIDATION_ERROR", "The form was sent from another site")
        req.exchange.unattended = resource.is_unattended
        if token:
            await self._authorize(req, token)
        if resource.needs_session:
            self._require_session(req, resource)
        if token and not resource.is_unattended:
            req.exchange.merchant_name = await self._merchant_of(req)
        if resource.link and req.method in _READS:
            self._deps.pages.require(req, resource.link)

    def _take(self, requests: Buckets, whose: str) -> None:
        """Counts the request. Raises RATE_LIMITED."""
        if not requests.take(whose):
            turned_away.count("page")
            raise requests.refusal()

    async def _authorize(self, req: Request, token: str) -> None:
        """Stores the session and the token of its person; neither when the session has ended."""
        request = pb.AuthorizeRequest(
            session_token=token,
            surface=self._deps.surface.kind,
            client=req.client,
            unattended=req.exchange.unattended,
        )
        question = partial(self._deps.signin.Authorize, request)
        try:
            session = await self._deps.strangers.ask(SESSIONS, req.exchange.network, token, question)
        except Refused as refused:
            if refused.reason != "SESSION_INVALID":
                raise
            self._seen.pop(token, None)
        else:
            self._remember(token, session.person.person_id)
            req.exchange.session = session
            carry_token(session.actor_token)

    async def _merchant_of(self, req: Request) -> str:
        """Returns the name of the session's merchant for a member of several, else nothing; its id while identity is
        away.
        """
        session = req.exchange.session
        if session is None or not session.merchant_id or len(session.person.memberships) < 2:
            return ""
        return (await self._names(session.merchant_id))[session.merchant_id]

    async def _names(self, *merchant_ids: str) -> Mapping[str, str]:
        """Returns the names of the merchants; the id of one whose name is not found."""
        request = merchants_pb2.NameMerchantsRequest(merchant_ids=merchant_ids)
        found = await or_none(self._deps.merchants.NameMerchants(request))
        return {id: (found.names.get(id) if found else None) or id for id in merchant_ids}

    def _remember(self, token: str, person_id: str) -> None:
        self._seen[token] = person_id
        self._seen.move_to_end(token)
        if len(self._seen) > SEEN_MOST:
            self._seen.popitem(last=False)

    def _require_session(self, req: Request, page: Page) -> None:
        session = req.exchange.session
        if session is None:
            raise SignInFirst
        if self._deps.surface.has_merchants and page.needs_merchant and not session.merchant_id:
            raise ChooseMerchantFirst

    async def on_sign_in_first(
        self, req: Request, resp: falcon.asgi.Response, error: SignInFirst, params: object, **_: object
    ) -> None:
        """Sends the browser to the sign-in page, and from there back to this page; a script gets 204."""
        if req.exchange.unattended:
            resp.status = falcon.HTTP_204
            return
        has_ended = bool(req.exchange.session_token)
        if has_ended:
            self._cookie.clear(resp)
        to = req.relative_uri if req.method == "GET" and req.path != "/" else ""
        leave_for(resp, "/sign-in", to=to, problem="session_invalid" if has_ended else "")

    async def on_choose_merchant_first(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        error: ChooseMerchantFirst,
        params: object,
        **_: object,
    ) -> None:
        leave_for(resp, "/merchant")

    async def on_other_merchant(
        self, req: Request, resp: falcon.asgi.Response, error: OtherMerchant, params: object, **_: object
    ) -> None:
        """Answers a form of another merchant: which one that was, which one is chosen now, and the ways on."""
        session = req.exchange.signed_in
        own = {each.merchant_id for each in session.person.memberships}
        shown_for = error.shown_for if error.shown_for in own else ""
        names = await self._names(*filter(None, (shown_for, session.merchant_id)))
        req.exchange.code = "OTHER_MERCHANT"
        self._deps.pages.show(
            req,
            resp,
            "other-merchant",
            status=409,
            shown_for=shown_for,
            shown_name=names.get(shown_for, ""),
            chosen_name=names[session.merchant_id],
        )
