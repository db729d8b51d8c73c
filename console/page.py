"""The base of every resource for people: what it needs before it runs, and the ways in which it answers."""

import re
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final

import falcon
import falcon.asgi

from console.calls import or_none
from console.exchange import Request
from console.ui.pages import FOR_MERCHANT, may
from console.ui.values import queried
from console.ui.words import NOTICES, errors_of, sentence_for
from console.wiring import Deps
from fiatgate.accounts.v1 import accounts_pb2
from fiatgate.find.v1 import find_pb2
from fiatgate.merchants.v1 import merchants_pb2
from kit.base.ids import parse_id
from kit.rpc.errors import Refused, invalid
from kit.web.forms import Form, form_of

App = falcon.asgi.App[Any, Any]

NO_NAMES: Final[Mapping[str, str]] = MappingProxyType({})
"""The names of merchants while they can't be found out: a page shows ids alone, a file is refused."""
_OWN_PATH: Final = re.compile(r"/(?!/)[A-Za-z0-9/_.-]*(\?[A-Za-z0-9/_.~%&=:+@-]*)?").fullmatch
PATH_MAX_CHARACTERS: Final = 1000
_APPROVALS: Final = re.compile(r"[a-z]{1,20}(:[0-9a-f-]{36}){1,100}").fullmatch
FIELDS_MAX: Final = 400
"""Fields of one form: as many as a list has rows with a box each, and what their act needs."""


@dataclass(frozen=True)
class Line:
    """The result of an act on one of several things, for people.

    path     of the thing's page
    name     by which people know it; empty: its id
    message  what happened, or why nothing did
    asked    path of the request for a second person that it made
    """

    id: str
    path: str
    message: str
    is_done: bool = False
    asked: str = ""
    name: str = ""


class OtherMerchant(Exception):
    """The form was shown for another merchant than the one that the session acts for. Nothing was done.

    shown_for  the merchant's id as the form has it; empty: the form names none
    """

    def __init__(self, shown_for: str) -> None:
        super().__init__(shown_for)
        self.shown_for = shown_for


class Page:
    """A page of a surface, and its steps.

    needs_session   without one, the browser is sent to the sign-in page (`signin.access`)
    needs_merchant  on the dashboard: a session without a merchant is sent to the page that chooses one
    is_unattended   open pages send its requests by themselves: they do not keep the session alive
    link            the page's entry of the navigation: who may not open it gets no page below it either
    """

    needs_session: ClassVar[bool] = True
    needs_merchant: ClassVar[bool] = True
    is_unattended: ClassVar[bool] = False
    link: ClassVar[str] = ""

    def __init__(self, deps: Deps) -> None:
        self.deps = deps

    def show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        template: str,
        *,
        refused: Refused | None = None,
        **values: Any,
    ) -> None:
        """Answers with a template; with the sentence of the address's `notice` or `problem`, or of a refused form. In a
        link that another person sent they count for nothing: only a step of this browser leads to them.

        A template also gets `errors`: the sentence of a refused form by the field that it names.
        """
        reports = follows_own_page(req)
        notice = NOTICES.get(req.get_param("notice") or "") if reports else None
        approvals = _approvals_of(req, refused) if reports or refused else []
        problem = sentence_for(refused.reason, refused) if refused else None
        if problem is None and reports and (named := req.get_param("problem")):
            problem = sentence_for(named.upper())
        if refused is not None:
            req.exchange.code = refused.reason
        if approvals:
            notice, problem = sentence_for("APPROVAL_REQUIRED"), None
        self.deps.pages.show(
            req,
            resp,
            template,
            **{
                "for_merchant": self.merchant_of_forms(req),
                "status": 202 if approvals and refused else 422 if refused else 200,
                "notice": notice,
                "problem": problem,
                "approvals": approvals,
                "errors": errors_of(refused),
            }
            | values,
        )

    def may(self, req: Request, *roles: str) -> bool:
        """Returns whether to offer what these roles may do; the service decides again."""
        return may(req, *roles)

    def merchant_of_forms(self, req: Request) -> str:
        """Returns the merchant that the forms of this page are for; empty where forms concern no merchant."""
        is_bound = self.needs_session and self.needs_merchant and self.deps.surface.has_merchants
        return req.exchange.signed_in.merchant_id if is_bound else ""

    async def names(self, *merchant_ids: str) -> Mapping[str, str]:
        """Returns the names of the merchants; `NO_NAMES` while identity is away."""
        wanted = sorted({*merchant_ids} - {""})
        if not wanted:
            return {}
        request = merchants_pb2.NameMerchantsRequest(merchant_ids=wanted)
        found = await or_none(self.deps.merchants.NameMerchants(request))
        return NO_NAMES if found is None else found.names

    async def show_link(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        link: str,
        invitation: accounts_pb2.Invitation,
        *,
        back: str = "/people",
    ) -> None:
        """Shows the link of an invitation, this once, with what it gives."""
        names = await self.names(*(each.merchant_id for each in invitation.memberships))
        self.show(req, resp, "invited", link=link, invitation=invitation, names=names, back=back)

    async def merchant_of(self, merchant_id: str) -> merchants_pb2.Merchant | None:
        """Returns the merchant, an empty one if identity does not know it; None while identity does not answer."""
        request = merchants_pb2.GetMerchantRequest(merchant_id=merchant_id)
        try:
            found = await or_none(self.deps.merchants.GetMerchant(request))
        except Refused as refused:
            if refused.reason != "MERCHANT_NOT_FOUND":  # accounts takes any merchant in an invitation
                raise
            return merchants_pb2.Merchant()
        return None if found is None else found.merchant

    async def ban_of(self, merchant_id: str) -> str:
        """Returns the ban of the merchant, as `ban_in`."""
        return ban_in(await self.merchant_of(merchant_id))

    async def merchant_named(self, text: str, *, field: str = "merchant") -> str:
        """Returns the id of the merchant that a person names by its id, the beginning of it, or its name. Raises
        VALIDATION_ERROR for the field.
        """
        if not text or parse_id(text):
            return text
        found = (await self.deps.find["identity"].Find(find_pb2.FindRequest(text=text, limit=5))).found
        fitting = {each.id: each.facts.get("name") or each.value for each in found if each.kind == "merchant"}
        if len(fitting) == 1:
            return next(iter(fitting))
        several = f"several merchants fit, give more of it: {', '.join(fitting.values())}"
        message = several if fitting else "no merchant has this id or name"
        raise invalid("VALIDATION_ERROR", message, field=field)

    async def leave_after(
        self,
        resp: falcon.asgi.Response,
        change: Awaitable[object],
        path: str,
        *,
        notice: str,
        mendable: Collection[str],
    ) -> None:
        """Redirects to the path when the change is made, with the notice; or with the sentence of a refusal for one of
        the mendable reasons, and with the request for a second person.
        """
        try:
            await change
        except Refused as refused:
            if refused.reason not in mendable:
                raise
            if asked := _approvals_in(refused):
                leave_for(resp, path, asked=asked)
            else:
                leave_for(resp, path, problem=refused.reason.lower())
        else:
            leave_for(resp, path, notice=notice)

    def leave_or_list(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        kind: str,
        lines: Sequence[Line],
        *,
        back: str,
        notice: str,
    ) -> None:
        """Redirects with the notice when all are done, else shows what happened to each."""
        if all(each.is_done for each in lines):
            leave_for(resp, back, notice=notice)
        else:
            self.show(req, resp, "outcomes", kind=kind, lines=lines, back=back)

    async def form(self, req: Request, *, file_field: str = "", file_max_bytes: int = 0) -> Form:
        """Reads the posted form, when no other check is left. Raises `OtherMerchant` for one that was shown for another
        merchant: a member of several may have chosen another one in another window since.
        """
        await req.exchange.receive_body()
        form = posted(req, file_field=file_field, file_max_bytes=file_max_bytes)
        acts_for, shown_for = self.merchant_of_forms(req), {*form.all(FOR_MERCHANT)}
        if acts_for and shown_for != {acts_for}:
            raise OtherMerchant(next(iter(shown_for - {acts_for}), ""))
        return form


def ban_in(merchant: merchants_pb2.Merchant | None) -> str:
    """Returns "owner_blocked" or "banned", "unknown" while identity does not answer; empty for a merchant that may
    start something.
    """
    if merchant is None:
        return "unknown"
    is_banned = merchant.status == merchants_pb2.MERCHANT_STATUS_BANNED
    return "owner_blocked" if merchant.owner_blocked else "banned" if is_banned else ""


def follows_own_page(req: Request) -> bool:
    """Returns whether a page of ours led the browser here, or it is not signed in. Browsers from before 2023 do
    not report it.
    """
    return req.exchange.session is None or req.get_header("Sec-Fetch-Site") in (None, "same-origin")


def posted(req: Request, *, file_field: str = "", file_max_bytes: int = 0) -> Form:
    """Returns the form in the body, which was received; many forms here have a button and no field."""
    if not req.exchange.body:
        return Form({})
    return form_of(req, file_field=file_field, file_max_bytes=file_max_bytes, fields_most=FIELDS_MAX)


def leave_for(resp: falcon.asgi.Response, path: str, **query: str) -> None:
    """Redirects with 303: the browser's next request, and a reload, is a GET."""
    resp.status = falcon.HTTP_303
    resp.location = queried(path, query)
    resp.set_header("Cache-Control", "no-store")


def own_path(text: str) -> str:
    """Returns the path if it is one of this surface, else the start page: a link must not lead to another site."""
    return text if len(text) <= PATH_MAX_CHARACTERS and _OWN_PATH(text) else "/"


def _approvals_in(refused: Refused) -> str:
    """Returns the requests that a call made for a second person, as an address holds them: withdrawals:0197…"""
    ids = refused.metadata.get("approval_id", "") if refused.reason == "APPROVAL_REQUIRED" else ""
    return ":".join([refused.peer, *ids.split()]) if ids and refused.peer else ""


def _approvals_of(req: Request, refused: Refused | None) -> list[str]:
    """Returns the addresses of the requests that this step, or the one before, made for a second person."""
    asked = _approvals_in(refused) if refused else req.get_param("asked") or ""
    if not _APPROVALS(asked):
        return []
    service, *ids = asked.split(":")
    return [f"/approvals/{service}/{id}" for id in ids]


def chosen(form: Form, names: Mapping[str, str], *, prefix: str) -> list[str]:
    """Returns those of the names whose boxes are ticked: the field `prefix:name`."""
    return [name for name in names if form.text(f"{prefix}:{name}")]
