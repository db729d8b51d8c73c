"""The start page of the desk."""

import falcon.asgi

from console.exchange import Request
from console.page import Page


class HomePage(Page):
    """/: the person, the roles, and what is missing."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        self.show(req, resp, "desk-home")

    on_head = on_get
