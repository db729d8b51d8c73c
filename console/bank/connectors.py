"""Connectors of banks: which programs post lines, and when each was heard last."""

import falcon.asgi

from console.exchange import Request
from console.page import Page
from fiatgate.bank.v1 import feed_pb2 as pb


class ConnectorsPage(Page):
    """/bank/connectors: active ones first. The command makes and revokes keys."""

    link = "/bank"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        found = (await self.deps.feed.ListConnectors(pb.ListConnectorsRequest())).connectors
        self.show(req, resp, "bank-connectors", connectors=found)

    on_head = on_get
