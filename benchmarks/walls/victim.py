"""Another merchant and its customers, at work while the attack goes on."""

from __future__ import annotations

import asyncio
import itertools
import statistics
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
import uvloop

from kit.base.clock import monotonic_seconds

ANSWER_SECONDS: Final = 15
PER_SECOND: Final = {"create-invoice": 25, "I have paid": 5, "resend": 5, "dashboard page": 10, "sign-in": 1}
EXPECTED: Final = {
    "create-invoice": 201,
    "I have paid": 303,
    "resend": 200,
    "dashboard page": 200,
    "sign-in": 303,
}


@dataclass(frozen=True)
class Request:
    """path  with an address before it for another process than the gateway"""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any] | None = None
    form: dict[str, str] | None = None


@dataclass
class Series:
    """Milliseconds from the moment a request was due to its answer, and the answers that were not as they should be."""

    latencies_ms: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def p99_ms(self) -> float:
        return statistics.quantiles(self.latencies_ms, n=100)[98]

    @property
    def p50_ms(self) -> float:
        return statistics.median(self.latencies_ms)


class Victim:
    """`requests` gives what each kind sends next."""

    def __init__(self, url: str, requests: dict[str, Iterator[Request]]) -> None:
        self._url = url
        self._requests = requests

    def work(self, series: dict[str, Series], *, seconds: int) -> None:
        """Sends requests of every kind in `series` at its pace. A late answer delays no other request.

        Each comes with a connection of its own: an attack that takes the connections away must show.
        """
        uvloop.run(self._work(series, seconds))

    async def _work(self, series: dict[str, Series], seconds: int) -> None:
        connector = aiohttp.TCPConnector(limit=0, force_close=True)
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        cookies = aiohttp.DummyCookieJar()  # a request has the cookie that its headers name
        async with aiohttp.ClientSession(
            self._url, connector=connector, timeout=timeout, cookie_jar=cookies
        ) as session:

            async def send(kind: str, due_seconds: float) -> None:
                status = await _status(session, next(self._requests[kind]))
                series[kind].latencies_ms.append(1000 * (monotonic_seconds() - due_seconds))
                if status != str(EXPECTED[kind]):
                    series[kind].failures[status] += 1

            await asyncio.gather(*(_paced(kind, PER_SECOND[kind], seconds, send) for kind in series))


async def _paced(
    kind: str, per_second: int, seconds: int, send: Callable[[str, float], Coroutine[Any, Any, None]]
) -> None:
    began_seconds = monotonic_seconds()
    async with asyncio.TaskGroup() as sent:
        for number in itertools.count():
            due_seconds = began_seconds + number / per_second
            if due_seconds >= began_seconds + seconds:
                return
            await asyncio.sleep(max(due_seconds - monotonic_seconds(), 0))
            sent.create_task(send(kind, due_seconds))


async def _status(session: aiohttp.ClientSession, request: Request) -> str:
    """The answer's status, or what happened in its place."""
    try:
        async with session.request(
            request.method,
            request.path,
            headers=request.headers,
            json=request.body,
            data=request.form,
            allow_redirects=False,
        ) as answer:
            await answer.read()
            return str(answer.status)
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        return type(error).__name__
