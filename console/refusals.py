"""Falcon's error handlers: every exception becomes a plain page with the next step.

`PROBLEMS` has the reasons that end in such a page. Those that a person can mend in the form are in `ui.words`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.page import OtherMerchant
from console.signin.access import Access, ChooseMerchantFirst, SignInFirst
from console.signin.step_up import StepUpPage
from console.ui import words
from console.wiring import Deps
from kit.rpc.errors import Refused, is_away
from kit.web import refusals


@dataclass(frozen=True)
class Problem:
    """A page.

    retry_after_seconds  the least time until another try; None: only that which the refusal itself names
    """

    status: int
    title: str
    sentence: str
    retry_after_seconds: int | None = None


_NO_PAGE: Final = Problem(404, "Not found", "There is nothing at this address, or not for you.")
_LATER: Final = Problem(
    503, "One moment, please", "A part of Fiatgate does not answer. Try again in a few seconds.", 5
)
_OURS: Final = Problem(
    500,
    "Something went wrong",
    "The problem is on our side. Check whether your change was made before you make it again.",
)
PROBLEMS: Final[Mapping[str, Problem]] = {
    "NOT_FOUND": _NO_PAGE,
    "PERSON_NOT_FOUND": _NO_PAGE,
    "SESSION_NOT_FOUND": _NO_PAGE,
    "INVITATION_NOT_FOUND": _NO_PAGE,
    "FACTOR_NOT_FOUND": _NO_PAGE,
    "MERCHANT_NOT_FOUND": _NO_PAGE,
    "WEBHOOK_EVENT_NOT_FOUND": _NO_PAGE,
    "DEAL_NOT_FOUND": _NO_PAGE,
    "CASE_NOT_FOUND": _NO_PAGE,
    "LINK_NOT_FOUND": _NO_PAGE,
    "PROOF_NOT_FOUND": _NO_PAGE,
    "OWNER_NOT_FOUND": _NO_PAGE,
    "INVOICE_NOT_FOUND": _NO_PAGE,
    "CURRENCY_NOT_FOUND": _NO_PAGE,
    "PAYMENT_METHOD_NOT_FOUND": _NO_PAGE,
    "REQUISITE_NOT_FOUND": _NO_PAGE,
    "APPROVAL_NOT_FOUND": _NO_PAGE,
    "WITHDRAWAL_NOT_FOUND": _NO_PAGE,
    "REFUND_NOT_FOUND": _NO_PAGE,
    "CORRECTION_NOT_FOUND": _NO_PAGE,
    "BANK_IMPORT_NOT_FOUND": _NO_PAGE,
    "BANK_LINE_NOT_FOUND": _NO_PAGE,
    "CONNECTOR_NOT_FOUND": _NO_PAGE,
    "METHOD_NOT_ALLOWED": Problem(405, "That did not work", "Go back to the page and continue from there."),
    "PAYLOAD_TOO_LARGE": Problem(
        413, "That was too long", "Go back to the page and send less: a shorter text, a smaller picture."
    ),
    "VALIDATION_ERROR": Problem(400, "That did not work", "The form could not be read. Open its page again."),
    "RATE_LIMITED": Problem(
        429,
        "Too many requests",
        "Too many requests come from your network, or from all people together. Wait a minute, then try again.",
    ),
    "NOT_PERMITTED": Problem(403, "Not permitted", "Your roles do not allow this. The attempt was recorded."),
    "ACTOR_INVALID": Problem(403, "Not permitted", "This surface may not do that. The attempt was recorded."),
    "NOT_DECIDED": Problem(409, "Nothing was done", words.PROBLEMS["NOT_DECIDED"]),
    "DB_UNAVAILABLE": _LATER,
}


class Refusals(refusals.Refusals[Request]):
    """The handlers; beside those of `kit.web.refusals`, those of `Access`."""

    def __init__(self, deps: Deps, access: Access) -> None:
        self._pages = deps.pages
        self._access = access
        self._step_up = StepUpPage(deps)

    def add_to(self, app: falcon.asgi.App[Any, Any]) -> None:
        super().add_to(app)
        app.add_error_handler(SignInFirst, self._access.on_sign_in_first)
        app.add_error_handler(ChooseMerchantFirst, self._access.on_choose_merchant_first)
        app.add_error_handler(OtherMerchant, self._access.on_other_merchant)

    async def on_refused(
        self, req: Request, resp: falcon.asgi.Response, refused: Refused, params: object, **_: object
    ) -> None:
        if refused.reason == "SESSION_INVALID":
            await self._access.on_sign_in_first(req, resp, SignInFirst(), params)
        elif refused.reason == "STEP_UP_REQUIRED" and req.exchange.session is not None:
            await self._step_up.ask(req, resp)
        else:
            self.answer(req, resp, refused)

    def answer(self, req: Request, resp: falcon.asgi.Response, refused: Refused) -> None:
        problem = PROBLEMS.get(refused.reason, _OURS)
        if refused.reason == "ACTOR_INVALID" and is_away(refused):
            problem = _LATER
        if roles := refused.metadata.get("page_for"):
            problem = Problem(403, "Not permitted", f"This page is for people with the role {roles}.")
        if files := refused.metadata.get("files"):
            sentence = (
                f"{files} files of yours, or many of all people, are being sent. Wait until one has arrived."
            )
            problem = Problem(429, "Too many files", sentence)
        req.exchange.code = refused.reason
        self._pages.show(
            req,
            resp,
            "problem",
            status=problem.status,
            title=problem.title,
            sentence=problem.sentence,
            reference=refused.metadata.get("error_id") or req.exchange.request_id,
        )
        refusals.say_when(resp, refused, problem.retry_after_seconds)
