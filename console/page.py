"""The base of every resource for people: what it needs before it runs, and the ways in which it answers."""

import re
from collections.abc import Awaitable, Collection, Mapping
from typing import Any, ClassVar, Final
from urllib.parse import urlencode

import falcon
import falcon.asgi

from console.exchange import Request
from console.ui.pages import roles_of
from console.ui.words import NOTICES, sentence_for
from console.wiring import Deps
from kit.rpc.errors import Refused, denied
from kit.web.forms import Form, form_of

_OWN_PATH: Final = re.compile(r"/(?!/)[A-Za-z0-9/_.-]*(\?[A-Za-z0-9/_.~%&=:+@-]*)?").fullmatch
PATH_MAX_CHARACTERS: Final = 1000


class Page:
    """A page of a surface, and its steps.

    needs_session   without one, the browser is sent to the sign-in page (`signin.access`)
    needs_merchant  on the dashboard: a session without a merchant is sent to the page that chooses one
    """

    needs_session: ClassVar[bool] = True
    needs_merchant: ClassVar[bool] = True

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
        """Answers with a template; with the sentence of the address's `notice` or `problem`, or of a refused form."""
        notice = NOTICES.get(req.get_param("notice") or "")
        approval_id = refused.metadata.get("approval_id") if refused else None
        problem = sentence_for(refused.reason, refused) if refused else None
        if problem is None and (named := req.get_param("problem")):
            problem = sentence_for(named.upper())
        if refused is not None:
            req.exchange.code = refused.reason
        status = 202 if approval_id else 422 if refused else 200
        shown = {"status": status, "notice": notice, "problem": problem, "approval_id": approval_id}
        self.deps.pages.show(req, resp, template, **shown | values)

    def only_for(self, req: Request, roles: Collection[str]) -> None:
        """Raises NOT_PERMITTED unless the person has one of the roles. For pages: a change is refused, and the attempt
        recorded, by the service that would make it.
        """
        if not set(roles) & set(roles_of(req.exchange.signed_in)):
            wanted = sorted(roles)
            raise denied("NOT_PERMITTED", "The page is for other roles", page_for=" or ".join(wanted))

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
        the mendable reasons.
        """
        try:
            await change
        except Refused as refused:
            if refused.reason not in mendable:
                raise
            leave_for(resp, path, problem=refused.reason.lower())
        else:
            leave_for(resp, path, notice=notice)

    async def form(self, req: Request) -> Form:
        """Reads the posted form, when no other check is left."""
        await req.exchange.receive_body()
        return posted(req)


def posted(req: Request) -> Form:
    """Returns the form in the body, which was received; many forms here have a button and no field."""
    return form_of(req) if req.exchange.body else Form({})


def leave_for(resp: falcon.asgi.Response, path: str, **query: str) -> None:
    """Redirects with 303: the browser's next request, and a reload, is a GET."""
    given = {name: value for name, value in query.items() if value}
    resp.status = falcon.HTTP_303
    resp.location = f"{path}?{urlencode(given)}" if given else path
    resp.set_header("Cache-Control", "no-store")


def own_path(text: str) -> str:
    """Returns the path if it is one of this surface, else the start page: a link must not lead to another site."""
    return text if len(text) <= PATH_MAX_CHARACTERS and _OWN_PATH(text) else "/"


def chosen(form: Form, names: Mapping[str, str], *, prefix: str) -> list[str]:
    """Returns those of the names whose boxes are ticked: the field `prefix:name`."""
    return [name for name in names if form.text(f"{prefix}:{name}")]
