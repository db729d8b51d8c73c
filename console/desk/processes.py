"""The state of each process, in the words of `fiatgate status`: the services by their own answer, the processes with an
HTTP server by theirs at /readyz.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from console.config import DeskSettings
from console.ui.values import age_text, ago
from console.wiring import Deps
from fiatgate.status.v1 import status_pb2 as pb
from kit.rpc import health
from kit.rpc.errors import Refused, is_away

ANSWER_MAX_BYTES: Final = 65_536
UNKNOWN: Final = "unknown"


@dataclass(frozen=True)
class Reported:
    """A process as it answered.

    state       well, attention or ill; unknown where the desk has no address of it
    lines       each trouble; of a process that is no service its state
    started_at  null, and no version: it does not answer, or it is no service
    loops       its loops that are well, with the time since their last round
    numbers     each with what it counts, and its value
    """

    name: str
    state: str
    lines: Sequence[health.Line]
    started_at: datetime | None = None
    version: str = ""
    loops: Sequence[health.Line] = ()
    numbers: Sequence[tuple[str, str]] = ()

    @property
    def zeros(self) -> Sequence[str]:
        """The names of the numbers that are zero now."""
        return [meaning for meaning, number in self.numbers if number == "0"]

    @property
    def is_well(self) -> bool:
        return self.state != health.ILL


async def of_services(deps: Deps, *, seconds: float) -> list[Reported]:
    """Queries all services at the same time. `seconds`: the longest time of an answer."""
    return list(await asyncio.gather(*(_of_service(deps, name, seconds) for name in deps.status)))


async def of_http(deps: Deps, *, seconds: float) -> list[Reported]:
    """Queries the gateway and the dashboard. `seconds`: the longest time of an answer."""
    settings = deps.settings
    assert isinstance(settings, DeskSettings), "only the desk has these pages"
    urls = {
        "gateway": ("FIATGATE_INTERNAL_GATEWAY_URL", settings.internal_gateway_url),
        "console-dashboard": ("FIATGATE_INTERNAL_DASHBOARD_URL", settings.internal_dashboard_url),
    }
    return list(
        await asyncio.gather(
            *(
                asyncio.to_thread(_ready, name, url, seconds) if url else _unknown(name, variable)
                for name, (variable, url) in urls.items()
            )
        )
    )


def of_desk(name: str, services: Sequence[Reported]) -> Reported:
    """Returns the state of this process: it waits for all services."""
    answers = {each.name: "serving" if each.version else "not serving" for each in services}
    return _of_answer(name, answers)


async def _of_service(deps: Deps, name: str, seconds: float) -> Reported:
    try:
        answer = await deps.status[name].GetStatus(pb.GetStatusRequest(), timeout=seconds)
    except Refused as refused:
        if not is_away(refused):
            raise
        return _silent(name, refused.reason)
    return Reported(
        name,
        health.state_of(answer),
        list(health.troubles_of(answer, age=_round_of, named=lambda gauge: ": ".join(_counted(gauge)))),
        answer.started_at.ToDatetime(UTC),
        answer.version,
        list(health.loops_of(answer, age=_round_of)),
        [_counted(each) for each in health.numbers_of(answer)],
    )


def _counted(gauge: pb.Gauge) -> tuple[str, str]:
    """Returns what the number counts, and the number as people read it: a time as 2 min."""
    is_time = gauge.unit == "seconds" and gauge.value >= 1
    number = age_text(timedelta(seconds=gauge.value)) if is_time else health.number_text(gauge)
    return gauge.meaning or gauge.name, number


def _round_of(worker: pb.WorkerStatus) -> str:
    return ago(worker.last_run_at) if worker.HasField("last_run_at") else "-"


def _ready(name: str, url: str, seconds: float) -> Reported:
    """Returns the process' answer at /readyz: the services that serve, from its side."""
    try:
        return _of_answer(name, json.loads(_body_of(f"{url}/readyz", seconds))["services"])
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return _silent(name, "NO_ANSWER")


def _body_of(url: str, seconds: float) -> Any:
    # No proxy of the environment: the address is one of ours.
    try:
        answer = build_opener(ProxyHandler({})).open(url, timeout=seconds)
    except HTTPError as not_ready:
        answer = not_ready
    with answer:
        return answer.read(ANSWER_MAX_BYTES)


def _of_answer(name: str, services: dict[str, str]) -> Reported:
    lines = list(health.lines_of_http(services))
    return Reported(name, health.ILL if any(each.is_trouble for each in lines) else health.WELL, lines)


def _silent(name: str, reason: str) -> Reported:
    return Reported(name, health.ILL, [health.no_answer(reason)])


async def _unknown(name: str, variable: str) -> Reported:
    line = health.Line((health.Part("no address of it is set", "wait"),), f"Set {variable} of the desk.")
    return Reported(name, UNKNOWN, [line])
