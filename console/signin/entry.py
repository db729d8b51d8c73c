"""The ways in and out: password with code, passkey, invitation, sign-out."""

import json
from collections.abc import Mapping
from functools import partial

import falcon.asgi

from console.exchange import Request
from console.page import Page, leave_for, own_path
from console.signin.cookie import SessionCookie
from console.strangers import LINKS, SIGN_INS
from console.wiring import Deps
from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.rpc.errors import Refused, unauthenticated
from kit.web.replies import reply

AGAIN = frozenset({"SIGN_IN_REFUSED", "SIGN_IN_DELAYED", "VALIDATION_ERROR"})


class _EntryPage(Page):
    needs_session = False

    def __init__(self, deps: Deps) -> None:
        super().__init__(deps)
        self._cookie = SessionCookie(deps.surface, is_https=deps.pages.is_https)

    async def _start(self, req: Request, resp: falcon.asgi.Response, session_token: str) -> None:
        """Puts the new session into the browser's cookie. First ends the session of the cookie that the browser sent:
        a cookie which an attacker planted opens nothing.
        """
        if req.exchange.session_token:
            await self.deps.signin.SignOut(pb.SignOutRequest(session_token=req.exchange.session_token))
        self._cookie.set(resp, session_token)


class SignInPage(_EntryPage):
    """/sign-in: one form for e-mail address, password and code; a passkey needs scripts."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        to = own_path(req.get_param("to") or "")
        if req.exchange.session is not None:
            leave_for(resp, to)
            return
        self.show(req, resp, "sign-in", to=to, email="")

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        request = pb.SignInByPasswordRequest(
            email=form.prose("email", most=254),
            password=form.text("password"),
            code="".join(form.prose("code", most=64).split()),
            surface=self.deps.surface.kind,
            client=req.client,
        )
        to = own_path(form.text("to"))
        try:
            request.known_network = await self._knows_network(req, request.email)
            started = await self.deps.signin.SignInByPassword(request)
        except Refused as refused:
            if refused.reason not in AGAIN:
                raise
            self.show(req, resp, "sign-in", refused=refused, to=to, email=request.email)
        else:
            await self._start(req, resp, started.session_token)
            leave_for(resp, to)

    async def _knows_network(self, req: Request, email: str) -> bool:
        """Returns whether the person has signed in from this network; strangers wait for their turn, or are refused."""
        asked = pb.KnowsNetworkRequest(email=email, surface=self.deps.surface.kind, client=req.client)

        async def question() -> None:
            if not (await self.deps.signin.KnowsNetwork(asked)).known:
                raise unauthenticated("SIGN_IN_REFUSED", "The person is not known in this network")

        network = req.exchange.network
        try:
            await self.deps.strangers.ask(SIGN_INS, network, f"{network} {email.lower()}", question)
        except Refused as refused:
            if refused.reason != "SIGN_IN_REFUSED":
                raise
            return False
        return True

    async def on_post_challenge(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Answers the script with a challenge."""
        await self.form(req)
        request = pb.StartPasskeyRequest(surface=self.deps.surface.kind)
        async with self.deps.passkeys.turn(req.exchange.network):
            started = await self.deps.signin.StartPasskey(request)
        reply(resp, {"challenge_id": started.challenge_id, "options": json.loads(started.options)})

    async def on_post_passkey(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        to = own_path(form.text("to"))
        request = pb.SignInByPasskeyRequest(
            challenge_id=form.text("challenge_id"),
            credential=form.text("credential"),
            surface=self.deps.surface.kind,
            client=req.client,
        )
        try:
            async with self.deps.passkeys.turn(req.exchange.network):
                started = await self.deps.signin.SignInByPasskey(request)
        except Refused as refused:
            if refused.reason not in AGAIN:
                raise
            self.show(req, resp, "sign-in", refused=refused, to=to, email="")
        else:
            await self._start(req, resp, started.session_token)
            leave_for(resp, to)


class SignOutPage(_EntryPage):
    """/sign-out"""

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self.form(req)
        if req.exchange.session_token:
            await self.deps.signin.SignOut(pb.SignOutRequest(session_token=req.exchange.session_token))
        self._cookie.clear(resp)
        leave_for(resp, "/sign-in", notice="signed-out")


class InvitationPage(_EntryPage):
    """/invitation?token=…: one button. Programs that check the links of a mail send a GET, which does not use it up."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._show(req, resp, req.get_param("token") or "")

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        token = (await self.form(req)).text("token")
        request = pb.AcceptInvitationRequest(token=token, surface=self.deps.surface.kind, client=req.client)
        try:
            accept = partial(self.deps.signin.AcceptInvitation, request)
            accepted = await self.deps.strangers.ask(LINKS, req.exchange.network, token, accept)
        except Refused as refused:
            if refused.reason != "INVITATION_INVALID":
                raise
            await self._show(req, resp, token)
            return
        if not accepted.session_token:  # the person has factors, or roles elsewhere, and signs in as always
            leave_for(resp, "/sign-in", notice="invitation-accepted")
            return
        await self._start(req, resp, accepted.session_token)
        leave_for(resp, "/account")

    async def _show(self, req: Request, resp: falcon.asgi.Response, token: str) -> None:
        request = pb.GetInvitationRequest(token=token, surface=self.deps.surface.kind)
        try:
            read = partial(self.deps.signin.GetInvitation, request)
            found = await self.deps.strangers.ask(LINKS, req.exchange.network, token, read)
        except Refused as refused:
            if refused.reason not in ("INVITATION_INVALID", "VALIDATION_ERROR"):
                raise
            req.exchange.code = "INVITATION_INVALID"
            self.show(req, resp, "invitation", status=404, invitation=None, token="")
        else:
            names = await self._merchants_of(found.invitation)
            self.show(req, resp, "invitation", invitation=found.invitation, names=names, token=token)

    async def _merchants_of(self, invitation: pb.Invitation) -> Mapping[str, str]:
        return await self.names(*(each.merchant_id for each in invitation.memberships))
