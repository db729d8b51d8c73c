"""The person's own sessions."""

import falcon.asgi

from console.exchange import Request
from console.page import Page, leave_for
from fiatgate.accounts.v1 import accounts_pb2 as pb


class SessionsPage(Page):
    """/account/sessions: a list, with which one can be ended, or all others."""

    needs_merchant = False

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        listed = await self.deps.own.ListOwnSessions(pb.ListOwnSessionsRequest())
        self.show(req, resp, "sessions", sessions=listed.sessions)

    on_head = on_get

    async def on_post_end(self, req: Request, resp: falcon.asgi.Response, session_id: str) -> None:
        await self.form(req)
        ended = self.deps.own.EndOwnSession(pb.EndOwnSessionRequest(session_id=session_id))
        await self.leave_after(
            resp, ended, "/account/sessions", notice="session-ended", mendable=("SESSION_NOT_FOUND",)
        )

    async def on_post_others(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self.form(req)
        await self.deps.own.EndOtherSessions(pb.EndOtherSessionsRequest())
        leave_for(resp, "/account/sessions", notice="others-ended")
