"""Answers with the pages of one surface."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import falcon.asgi
from markupsafe import Markup

from console.exchange import Request
from console.surfaces import DASHBOARD, DESK, Surface
from console.ui import statuses, values
from console.words import corrections
from console.words.ledger import changes_of, transfer_words
from console.words.states import words_of
from kit.base.clock import SystemClock
from kit.base.money import amount_text
from kit.rpc.errors import denied
from kit.web.files import Files
from kit.web.pages import answer_html
from kit.web.templates import Templates

CONSOLE: Final = Path(__file__).parents[1]
UI: Final = Path(__file__).parent

_HEADERS: Final = (
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
)
HTTPS_SECONDS: Final = 365 * 86_400
LIVE: Final = "/live"
"""The address of the live updates, for people who may read the queues."""
SEARCH: Final = "/find"
"""The address of the search; its box is shown to people who may open it."""

FOR_MERCHANT: Final = "for_merchant"
"""The field of a form with the merchant that it was shown for (`Page.form`)."""
_POSTED: Final = re.compile(r'(<form [^>]*\bmethod="post"[^>]*>.*?)(</form>)', re.DOTALL)

GROUPS: Final[Mapping[str, str]] = {
    "work": "Work",
    "find": "Look up",
    "setup": "Set up",
    "house": "Administration",
}
"""The groups of the navigation, in their order."""


@dataclass(frozen=True)
class Link:
    """An entry of the navigation.

    about    the page's content, on the start page
    roles    that may open it; empty: all
    group    of `GROUPS`; empty: it is not shown, and says only who may open the page
    surface  the surface that has it
    count    the queue whose length live updates write beside it; empty: none
    """

    path: str
    name: str
    about: str
    roles: frozenset[str] = frozenset()
    group: str = "work"
    surface: str = "desk"
    count: str = ""


def reads(*roles: str) -> frozenset[str]:
    """Returns the roles of the staff that may read what these may: `admin` and `auditor` read everything."""
    return frozenset({*roles, "admin", "auditor"})


def members_read(*roles: str) -> frozenset[str]:
    """Returns the roles of a merchant's members that may read what these may: `owner` reads everything."""
    return frozenset({*roles, "owner"})


@dataclass
class _Group:
    name: str
    links: list[Mapping[str, object]] = field(default_factory=list)


class Pages:
    """The pages of one surface.

    origin      scheme, host and port of the surface
    navigation  links to the pages that the surface has
    sandbox_url  the dashboard of an installation in test mode; empty: no link to it
    """

    def __init__(
        self, surface: Surface, *, origin: str, navigation: Sequence[Link], is_test: bool, sandbox_url: str
    ) -> None:
        self.surface = surface
        self.origin = origin
        self.is_https = origin.startswith("https:")
        self.files = Files(UI / "static")
        self._navigation = {each.path: each for each in navigation}
        self._templates = Templates(*sorted(CONSOLE.glob("*/templates")))
        self._templates.globals.update(surface=surface, static=f"/static/{self.files.version}")
        self._templates.globals.update(is_test=is_test, sandbox_url=sandbox_url)
        self._templates.globals.update(staff_roles=DESK.roles, member_roles=DASHBOARD.roles)
        self._templates.globals.update(word=values.word, tone_of=statuses.tone_of, words_of=words_of)
        self._templates.globals.update(deal_words=words_of)
        self._templates.globals.update(
            correction_kinds=corrections.KINDS,
            correction_debits=corrections.DEBITS,
            possible=corrections.possible,
        )
        self._templates.filters.update(
            time=values.time_text,
            iso=values.iso,
            ago=values.ago,
            short=values.short,
            queried=values.queried,
            percent=values.percent,
            account=values.account_text,
            amount=amount_text,
            transfer_words=transfer_words,
            changes=changes_of,
        )

    def opened_by(self, path: str) -> frozenset[str]:
        """Returns the roles that may open the page, and those below it, which the navigation links to."""
        return self._navigation[path].roles

    def may_open(self, req: Request, path: str) -> bool:
        """Returns whether the surface has this entry of the navigation, and the person may open it."""
        return path in self._navigation and self._opens(req, path)

    def require(self, req: Request, path: str) -> None:
        """Raises NOT_PERMITTED unless the person has a role that may open the page of the navigation."""
        if path in self._navigation and not self._opens(req, path):
            only_for(req, self.opened_by(path))

    def opens(self, req: Request, path: str) -> bool:
        """Returns whether the surface has this page in its navigation and the person may open it."""
        return path in self._navigation and req.exchange.session is not None and self._opens(req, path)

    def show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        template: str,
        *,
        status: int = 200,
        for_merchant: str = "",
        **given: Any,
    ) -> None:
        """Answers with a template and its values. The layout gets the session, which may be None.

        for_merchant  the merchant that each form of the page is for; empty: none
        """
        session = req.exchange.session
        groups = self._groups_for(req)
        html = self._templates.get_template(f"{template}.html").render(
            session=session,
            roles=roles_of(session) if session else (),
            has=lambda *roles: may(req, *roles),
            navigation_groups=groups,
            opened={path for path in self._navigation if self.opens(req, path)},
            navigation=[link for group in groups for link in group.links],
            live=LIVE if self.opens(req, LIVE) else "",
            now=values.iso_milliseconds(SystemClock().now()),
            searches=self.opens(req, SEARCH),
            is_home=req.path == "/",
            acts_for=req.exchange.merchant_name,
            **({"notice": None, "problem": None, "approvals": (), "errors": {}} | given),
        )
        answer_html(req, resp, _bound(html, for_merchant) if for_merchant else html, status=status)
        resp.set_headers(_HEADERS)
        if self.is_https:
            resp.set_header("Strict-Transport-Security", f"max-age={HTTPS_SECONDS}")

    def _opens(self, req: Request, path: str) -> bool:
        roles = self.opened_by(path)
        return not roles or not roles.isdisjoint(roles_of(req.exchange.signed_in))

    def _groups_for(self, req: Request) -> list[_Group]:
        session = req.exchange.session
        if session is None or (self.surface.has_merchants and not session.merchant_id):
            return []
        groups = {name: _Group(title) for name, title in GROUPS.items()}
        shown = [each for each in self._navigation.values() if each.group and self._opens(req, each.path)]
        current = max((each.path for each in shown if _is_within(req.path, each.path)), key=len, default="")
        for each in shown:
            groups[each.group].links.append(
                {
                    "path": each.path,
                    "name": each.name,
                    "about": each.about,
                    "count": each.count,
                    "is_current": each.path == current,
                }
            )
        return [each for each in groups.values() if each.links]


def roles_of(session: Any) -> Sequence[str]:
    """Returns the roles that count in a session: the member's of its merchant, or the person's of the staff."""
    if not session.merchant_id:
        return list(session.person.roles)
    return [
        role
        for each in session.person.memberships
        if each.merchant_id == session.merchant_id
        for role in each.roles
    ]


def may(req: Request, *roles: str) -> bool:
    """Returns whether the person may do what one of the roles may: `admin`, or a merchant's `owner`, may all."""
    session = req.exchange.session
    if session is None:
        return False
    all_of = "owner" if session.merchant_id else "admin"
    return not {*roles, all_of}.isdisjoint(roles_of(session))


EXPORTS_NOTHING: Final = frozenset({"viewer"})
"""The roles that read pages and get no files."""


def exports(req: Request) -> bool:
    """Returns whether the person may take files of what the pages show."""
    return not EXPORTS_NOTHING.issuperset(roles_of(req.exchange.signed_in))


def require_exporter(req: Request, readers: frozenset[str]) -> None:
    """Raises NOT_PERMITTED for a person who may only read; `readers` are the roles that open the page."""
    if not exports(req):
        only_for(req, readers - EXPORTS_NOTHING)


def only_for(req: Request, roles: frozenset[str]) -> None:
    """Raises NOT_PERMITTED unless the person has one of the roles. For pages: a change is refused, and the attempt
    recorded, by the service that would make it.
    """
    if roles.isdisjoint(roles_of(req.exchange.signed_in)):
        wanted = " or ".join(sorted(roles))
        raise denied("NOT_PERMITTED", "The page is for other roles", page_for=wanted)


def _bound(html: str, merchant_id: str) -> str:
    """Returns the page with the merchant in each form that changes something: no template can forget the field."""
    field = Markup('<input type="hidden" name="{}" value="{}">').format(FOR_MERCHANT, merchant_id)
    return _POSTED.sub(lambda form: f"{form[1]}{field}{form[2]}", html)


def _is_within(path: str, of: str) -> bool:
    return path == of or (of != "/" and path.startswith(f"{of}/"))
