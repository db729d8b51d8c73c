"""Answers with the pages of one surface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import falcon.asgi
from google.protobuf.timestamp_pb2 import Timestamp

from console.exchange import Request
from console.surfaces import Surface
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


@dataclass(frozen=True)
class Link:
    """An entry of the navigation.

    about  the page's content, on the start page
    roles  that may open it; empty: all
    """

    path: str
    name: str
    about: str
    roles: frozenset[str] = frozenset()


class Pages:
    """The pages of one surface.

    origin      scheme, host and port of the surface
    navigation  links to the pages that the surface has
    """

    def __init__(self, surface: Surface, *, origin: str, navigation: Sequence[Link]) -> None:
        self.surface = surface
        self.origin = origin
        self.is_https = origin.startswith("https:")
        self.files = Files(UI / "static")
        self._navigation = navigation
        self._templates = Templates(*sorted(CONSOLE.glob("*/templates")))
        self._templates.globals.update(surface=surface, static=f"/static/{self.files.version}")
        self._templates.filters.update(time=time_text, iso=iso)

    def opened_by(self, path: str) -> frozenset[str]:
        """Returns the roles that may open the page, and those below it, which the navigation links to."""
        return next(each.roles for each in self._navigation if each.path == path)

    def show(
        self, req: Request, resp: falcon.asgi.Response, template: str, *, status: int = 200, **values: Any
    ) -> None:
        """Answers with a template and its values. The layout gets the session, which may be None."""
        session = req.exchange.session
        html = self._templates.get_template(f"{template}.html").render(
            session=session,
            roles=roles_of(session) if session else (),
            navigation=self._links_for(req),
            **({"notice": None, "problem": None, "approval_id": None} | values),
        )
        answer_html(req, resp, html, status=status)
        resp.set_headers(_HEADERS)
        if self.is_https:
            resp.set_header("Strict-Transport-Security", f"max-age={HTTPS_SECONDS}")

    def _links_for(self, req: Request) -> list[Mapping[str, object]]:
        session = req.exchange.session
        if session is None or (self.surface.has_merchants and not session.merchant_id):
            return []
        mine = set(roles_of(session))
        return [
            {
                "path": each.path,
                "name": each.name,
                "about": each.about,
                "is_current": _is_within(req.path, each.path),
            }
            for each in self._navigation
            if not each.roles or mine & each.roles
        ]


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


def _is_within(path: str, of: str) -> bool:
    return path == of or (of != "/" and path.startswith(f"{of}/"))


def iso(at: Timestamp) -> str:
    """Returns the time for machines, in UTC."""
    return at.ToDatetime(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def time_text(at: Timestamp | datetime) -> str:
    """Returns the time for people, in UTC: 22 Nov 2026, 13:05 UTC."""
    moment = at if isinstance(at, datetime) else at.ToDatetime(UTC)
    return f"{moment.day} {moment:%b %Y, %H:%M} UTC"
