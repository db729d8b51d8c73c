"""The start page of the desk, and its navigation."""

from typing import Final

import falcon.asgi

from console.exchange import Request
from console.page import Page
from console.ui.pages import Link

NAVIGATION: Final = (
    Link("/people", "People", "the staff, its roles, invitations, sessions", frozenset({"admin", "auditor"})),
    Link("/audit", "Audit", "who did what, when, in all services", frozenset({"admin", "auditor"})),
)


class HomePage(Page):
    """/: the person, the roles, and what is missing."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        self.show(req, resp, "desk-home")

    on_head = on_get
