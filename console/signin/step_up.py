"""The proof of a second factor within a session, and the way back to what the person wanted to do."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

import falcon
import falcon.asgi

from console.calls import or_none
from console.exchange import Request
from console.page import Page, leave_for, own_path, posted
from console.signin.cookie import SessionCookie
from console.ui.words import FIELDS, VALID
from console.wiring import Deps
from fiatgate.accounts.v1 import accounts_pb2 as pb
from fiatgate.withdrawals.v1 import withdrawals_pb2
from kit.base.ids import parse_id
from kit.rpc.errors import Refused
from kit.web.forms import Form
from kit.web.replies import reply

OWN_FIELDS: Final = frozenset({"step_up_code", "step_up_challenge", "step_up_credential", "step_up_goes_on"})
SECRETS: Final = frozenset({"password", "repeated"})
"""Fields that are not copied into another page: the person types them again."""
ABOUT: Final = "step_up_about"
"""The field of a form that says what it does (macro `about`)."""
LABELS: Final = {
    **FIELDS,
    "merchant": "Merchant",
    "method": "Method",
    "memo": "Memo",
    "transaction": "Transaction",
    "valid": "Valid for",
    "note": "Note",
    "reason": "Reason",
    "role": "Roles",
}
"""Fields of forms that the page shows, as the forms name them."""
AGAIN: Final = frozenset({"SIGN_IN_REFUSED", "SIGN_IN_DELAYED", "VALIDATION_ERROR"})


def may_change_factors(req: Request) -> bool:
    """Returns whether a form that adds a factor will be taken without a step-up."""
    return req.exchange.signed_in.may_add_factors


class StepUpPage(Page):
    """/step-up?to=…: asked before a page, or in place of the answer to a form (`ask`).

    The fields of such a form are carried along. After the proof a 307 sends the browser with them to the form's own
    address: it posts them as if nothing had come between.
    """

    needs_merchant = False

    def __init__(self, deps: Deps) -> None:
        super().__init__(deps)
        self._cookie = SessionCookie(deps.surface, is_https=deps.pages.is_https)

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._show(req, resp, own_path(req.get_param("to") or ""), [])

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        to = own_path(req.get_param("to") or "")
        request = pb.StepUpRequest(
            session_token=req.exchange.session_token, surface=self.deps.surface.kind, client=req.client
        )
        if challenge_id := form.text("step_up_challenge"):
            answer = pb.PasskeyAnswer(challenge_id=challenge_id, credential=form.text("step_up_credential"))
            request.passkey.CopyFrom(answer)
        else:
            request.code = "".join(form.prose("step_up_code", most=64).split())
        try:
            stepped_up = await self.deps.signin.StepUp(request)
        except Refused as refused:
            if refused.reason not in AGAIN:
                raise
            await self._show(
                req, resp, to, _carried(form, goes_on=bool(form.text("step_up_goes_on"))), refused=refused
            )
            return
        self._cookie.set(resp, stepped_up.session_token)
        leave_for(resp, to)
        if form.text("step_up_goes_on"):
            resp.status = falcon.HTTP_307

    async def on_post_challenge(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Answers the script with a challenge."""
        await self.form(req)
        request = pb.StartPasskeyRequest(
            surface=self.deps.surface.kind, session_token=req.exchange.session_token
        )
        started = await self.deps.signin.StartPasskey(request)
        reply(resp, {"challenge_id": started.challenge_id, "options": json.loads(started.options)})

    async def ask(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Answers a form, which was refused with STEP_UP_REQUIRED, with the question for a proof."""
        if req.method != "POST":
            leave_for(resp, "/step-up", to=req.relative_uri)
            return
        form = posted(req)
        if SECRETS & form.fields.keys():
            leave_for(resp, "/step-up", to=req.path)
            return
        await self._show(req, resp, req.path, _carried(form, goes_on=True))

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        to: str,
        fields: Sequence[tuple[str, str]],
        *,
        refused: Refused | None = None,
    ) -> None:
        factors = await self.deps.own.ListFactors(pb.ListFactorsRequest())
        self.show(
            req,
            resp,
            "step-up",
            refused=refused,
            to=to,
            fields=fields,
            factors=factors,
            does=dict(fields).get(ABOUT, ""),
            typed=_typed(await self._in_words(fields)),
        )

    async def _in_words(self, fields: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
        """Returns the fields with the words of choices in place of their values."""
        words = {("valid", value): text for value, text in VALID.items()}
        if dict(fields).get("method", "").isdecimal():
            call = self.deps.withdrawals.ListWithdrawalMethods(withdrawals_pb2.ListWithdrawalMethodsRequest())
            listed = await or_none(call)
            methods = listed.methods if listed else ()
            words |= {("method", str(each.method_id)): f"{each.name} ({each.code})" for each in methods}
        return [(name, words.get((name, value), value)) for name, value in fields]


def _typed(fields: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """Returns what the person typed or changed, by the label of its field: no ids, and nothing that stays as it was."""
    was, shown = dict(fields), dict[str, list[str]]()
    for name, value in fields:
        field, _, ticked = name.partition(":")
        text = value if parse_id(ticked) else ticked or value
        if field == "account_kind" and not was.get("account", "given"):
            continue
        if field in LABELS and text and not parse_id(text) and was.get(f"was:{name}") != value:
            shown.setdefault(LABELS[field], []).append(text)
    return {label: ", ".join(texts) for label, texts in shown.items()}


def _carried(form: Form, *, goes_on: bool) -> Sequence[tuple[str, str]]:
    """Returns the fields of the form that waits for the proof, each value of a repeated one too."""
    kept = [(name, value) for name, value in form.pairs if name not in OWN_FIELDS]
    return [*kept, ("step_up_goes_on", "on")] if goes_on else kept
