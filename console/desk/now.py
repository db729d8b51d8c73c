"""The start page of the desk: what waits."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import falcon.asgi

from console.desk import processes
from console.desk.live import merged
from console.desk.queues import rows_of
from console.exchange import Request
from console.page import Page
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.queues.v1 import queues_pb2
from kit.base.clock import SystemClock
from kit.rpc.errors import Refused

CALL_SECONDS = 2.0
"""A service that does not answer in this time is named as away, and the page is shown without its numbers."""


@dataclass(frozen=True)
class Found:
    """The answers of the services.

    queues   of those that answered
    ill      processes that are not well; gateway and dashboard also when they do not answer
    away     services that do not answer
    is_open  whether new deals are accepted; None: not known
    """

    queues: list[queues_pb2.Queue]
    ill: list[str]
    away: list[str]
    is_open: bool | None


class NowPage(Page):
    """/: the queues, what is unwell, and whether deals are accepted."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        found = await self._found() if self.deps.pages.opens(req, "/") else Found([], [], [], None)
        now = SystemClock().now()
        rows = rows_of(found.queues, now=now, may=lambda *roles: self.may(req, *roles))
        paths = {row.kind.path for row in rows if self.deps.pages.opens(req, row.kind.path.partition("?")[0])}
        self.show(req, resp, "desk-now", rows=rows, found=found, paths=paths)

    on_head = on_get

    async def _found(self) -> Found:
        """Calls all processes at the same time, each once for its queues and once for its health."""
        queues, services, http, deals = await asyncio.gather(
            asyncio.gather(*(self._queues(name) for name in self.deps.queues)),
            processes.of_services(self.deps, seconds=CALL_SECONDS),
            processes.of_http(self.deps, seconds=CALL_SECONDS),
            self._deals(),
        )
        away = {each.name for each in services if not each.version}
        away |= {name for name, of_one in zip(self.deps.queues, queues, strict=True) if of_one is None}
        return Found(
            merged(of_one for of_one in queues if of_one is not None),
            [each.name for each in (*http, *services) if not each.is_well and each.name not in away],
            sorted(away),
            deals,
        )

    async def _queues(self, name: str) -> list[queues_pb2.Queue] | None:
        request = queues_pb2.ListQueuesRequest()
        try:
            return list((await self.deps.queues[name].ListQueues(request, timeout=CALL_SECONDS)).queues)
        except Refused as refused:
            _require_away(refused)
            return None

    async def _deals(self) -> bool | None:
        request = invoices_pb2.GetDealsSystemRequest()
        try:
            return (await self.deps.deals.GetDealsSystem(request, timeout=CALL_SECONDS)).enabled
        except Refused as refused:
            _require_away(refused)
            return None


def _require_away(refused: Refused) -> None:
    """Raises the refusal, unless the service does not answer, has just started and fetches the keys of accounts, or is
    of the version before.
    """
    if refused.reason not in processes.AWAY:
        raise refused
