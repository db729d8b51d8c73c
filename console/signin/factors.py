"""The person's own ways to sign in: passkeys, password, authenticator app, recovery codes."""

import json
from typing import Final

import falcon.asgi
from markupsafe import Markup

from console.exchange import Request
from console.page import Page, leave_for
from console.signin.step_up import may_change_factors
from fiatgate.accounts.v1 import accounts_pb2 as pb
from kit.rpc.errors import Refused, invalid
from kit.web.qr import svg_of
from kit.web.replies import reply

TOTP_URI: Final = "otpauth://totp/"
URI_MAX_CHARACTERS: Final = 512
KEPT: Final = ("LAST_FACTOR", "FACTOR_NOT_FOUND")
"""The reasons for which a factor is not removed."""


class FactorsPage(Page):
    """/account: all factors, with what is missing. After an invitation it is the first page."""

    needs_merchant = False

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        factors = await self.deps.own.ListFactors(pb.ListFactorsRequest())
        self.show(req, resp, "factors", factors=factors)

    on_head = on_get


class PasskeysPage(Page):
    """/account/passkeys: adds one with the browser's help, or removes one."""

    needs_merchant = False

    async def on_post_challenge(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Answers the script with a challenge; with the address of the step-up, where one is missing."""
        await self.form(req)
        if not may_change_factors(req):
            reply(resp, {"go": "/step-up?to=/account"})
            return
        started = await self.deps.own.StartPasskeyRegistration(pb.StartPasskeyRegistrationRequest())
        reply(resp, {"challenge_id": started.challenge_id, "options": json.loads(started.options)})

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        request = pb.RegisterPasskeyRequest(
            challenge_id=form.text("challenge_id"),
            credential=form.text("credential"),
            name=form.prose("name", most=64) or "Passkey",
        )
        added = self.deps.own.RegisterPasskey(request)
        await self.leave_after(resp, added, "/account", notice="passkey-added", mendable=("PASSKEY_INVALID",))

    async def on_post_remove(self, req: Request, resp: falcon.asgi.Response, passkey_id: str) -> None:
        await self.form(req)
        removed = self.deps.own.RemovePasskey(pb.RemovePasskeyRequest(passkey_id=passkey_id))
        await self.leave_after(resp, removed, "/account", notice="passkey-removed", mendable=KEPT)


class PasswordPage(Page):
    """/account/password: asks for the step-up before the form, so that no typed password is kept in a page."""

    needs_merchant = False

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        if not may_change_factors(req):
            leave_for(resp, "/step-up", to="/account/password")
            return
        self.show(req, resp, "password")

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        if form.text("password") != form.text("repeated"):
            differs = invalid("VALIDATION_ERROR", "the two passwords are not the same")
            self.show(req, resp, "password", refused=differs)
            return
        try:
            await self.deps.own.SetPassword(pb.SetPasswordRequest(password=form.text("password")))
        except Refused as refused:
            if refused.reason not in ("PASSWORD_REFUSED", "VALIDATION_ERROR"):
                raise
            self.show(req, resp, "password", refused=refused)
        else:
            leave_for(resp, "/account", notice="password-set")


class TotpPage(Page):
    """/account/totp: a secret as QR code and as text, which counts once a code of it was typed."""

    needs_merchant = False

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        self.show(req, resp, "totp-start")

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self.form(req)
        started = await self.deps.own.StartTotp(pb.StartTotpRequest())
        self._show(req, resp, started.secret, started.uri)

    async def on_get_confirm(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Redirects: a browser may have this address after a failed POST."""
        leave_for(resp, "/account/totp")

    async def on_post_confirm(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        code = "".join(form.prose("code", most=16).split())
        try:
            await self.deps.own.ConfirmTotp(pb.ConfirmTotpRequest(code=code))
        except Refused as refused:
            if refused.reason not in ("CODE_INVALID", "VALIDATION_ERROR"):
                raise
            self._show(req, resp, form.text("secret"), form.text("uri"), refused=refused)
        else:
            leave_for(resp, "/account", notice="totp-added")

    async def on_post_remove(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self.form(req)
        removed = self.deps.own.RemoveTotp(pb.RemoveTotpRequest())
        await self.leave_after(resp, removed, "/account", notice="totp-removed", mendable=KEPT)

    def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        secret: str,
        uri: str,
        *,
        refused: Refused | None = None,
    ) -> None:
        """Shows the secret. After a wrong code it is the one of the form, which the person sees already."""
        if not uri.startswith(TOTP_URI) or len(uri) > URI_MAX_CHARACTERS:
            raise invalid("VALIDATION_ERROR", "The form does not have its secret")
        groups = " ".join(secret[at : at + 4] for at in range(0, len(secret), 4))
        self.show(
            req, resp, "totp", refused=refused, secret=secret, groups=groups, uri=uri, code=qr_code(uri)
        )


class RecoveryCodesPage(Page):
    """/account/recovery-codes: ten new ones, shown in the answer and never again."""

    needs_merchant = False

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Redirects: a browser may have this address after a step-up."""
        leave_for(resp, "/account")

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self.form(req)
        made = await self.deps.own.MakeRecoveryCodes(pb.MakeRecoveryCodesRequest())
        self.show(req, resp, "recovery-codes", codes=list(made.codes))


def qr_code(text: str) -> Markup:
    """Returns a QR code as a part of a page."""
    return Markup(svg_of(text).decode())  # noqa: S704  the library's own markup, which holds no text
