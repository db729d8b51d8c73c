"""The health of all processes: what `fiatgate status` shows."""

from __future__ import annotations

import asyncio
from typing import ClassVar, Final

import falcon.asgi

from console.desk import processes
from console.exchange import Request
from console.page import Page
from kit.rpc import health

CALL_SECONDS: Final = 3.0
ORDER: Final = (health.ILL, health.ATTENTION, health.WELL, processes.UNKNOWN)


class HealthPage(Page):
    """/health: each process, its loops and numbers; what is ill first."""

    link: ClassVar[str] = "/health"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        services, http = await asyncio.gather(
            processes.of_services(self.deps, seconds=CALL_SECONDS),
            processes.of_http(self.deps, seconds=CALL_SECONDS),
        )
        found = [*http, processes.of_desk(self.deps.settings.service, services), *services]
        self.show(req, resp, "desk-health", found=sorted(found, key=lambda each: ORDER.index(each.state)))

    on_head = on_get


class FreshHealthPage(HealthPage):
    """/health/fresh: the same for an open page, which loads it by itself."""

    is_unattended: ClassVar[bool] = True
