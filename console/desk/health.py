"""The health of all processes: what `fiatgate status` shows."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import ClassVar

import falcon.asgi

from console.exchange import Request
from console.page import Page
from console.ui.values import ago
from fiatgate.status.v1 import status_pb2 as pb
from kit.rpc import health
from kit.rpc.errors import Refused

CALL_SECONDS = 3.0


@dataclass(frozen=True)
class Reported:
    """A process as it answered. started_at, version: empty while it does not answer."""

    name: str
    is_well: bool
    lines: Sequence[health.Line]
    started_at: datetime | None = None
    version: str = ""


class HealthPage(Page):
    """/health: each service, its loops and numbers; what is ill first."""

    link: ClassVar[str] = "/health"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        reports = await asyncio.gather(*(self._report(name) for name in self.deps.status))
        own = health.lines_of_http(
            {each.name: "not serving" if not each.version else "serving" for each in reports}
        )
        desk = Reported(self.deps.settings.service, all(each.version for each in reports), list(own))
        found = sorted([desk, *reports], key=lambda each: each.is_well)
        self.show(req, resp, "desk-health", found=found, well=health.WELL, ill=health.ILL)

    on_head = on_get

    async def _report(self, name: str) -> Reported:
        try:
            answer = await self.deps.status[name].GetStatus(pb.GetStatusRequest(), timeout=CALL_SECONDS)
        except Refused as refused:
            if refused.reason not in ("DB_UNAVAILABLE", "INTERNAL_ERROR"):
                raise
            return Reported(name, False, [health.no_answer(refused.reason)])
        lines = list(health.lines_of(answer, age=_round_of))
        started_at = answer.started_at.ToDatetime(UTC)
        return Reported(name, health.is_well(answer), lines, started_at, answer.version)


def _round_of(worker: pb.WorkerStatus) -> str:
    return ago(worker.last_run_at) if worker.HasField("last_run_at") else "-"
