"""The attacks, in a process of their own: `python -m benchmarks.walls.attackers NAME`.

The process reads a `Target` as JSON from stdin, prints `under way`, goes on until SIGTERM or until its time is over,
and prints as JSON how many answers of each status it got. Every connection comes from 127.66.N.9 (Linux has all of
127.0.0.0/8 on its loopback), so that the attacker is another client than the victim, in another network. Only loopback
is called.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import resource
import secrets
import signal
import string
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from urllib.parse import urlencode

import aiohttp
import uvloop

from kit.base.clock import monotonic_seconds

LONGEST_SECONDS: Final = 90
REQUESTS_PER_SECOND: Final = 1_200
"""The pace of a flood: as many as were answered before there were walls, at most (1,150 wrong keys a second).
An attacker without a pace would measure the two cores that it shares with its target.
"""
CONNECTIONS_PER_SECOND: Final = 500
"""How fast the connections of an attack come: all in one moment would be a flood of connections, another attack."""
UNDER_WAY_SECONDS: Final = 20
REFUSED_SECONDS: Final = 0.1
"""A client of a row that is no flood waits so long after a refusal: the row is about what is under way at a time."""
REFUSALS: Final = frozenset({429, 503})
ANSWER_SECONDS: Final = 30
KIBIBYTE: Final = 1024


@dataclass(frozen=True)
class Target:
    """The stack, and what an attacker may know of it.

    api_key   of the attacker, who is a merchant too
    networks  how many networks of clients the attack comes from
    invoices  of the attacker, waiting for a method
    deals     the attacker's invoices with an account to pay to
    events    the attacker's invoices whose webhook goes to an endpoint that never answers
    dashboard  its address
    people    e-mail addresses of the victim's members
    """

    port: int
    api_key: str
    networks: int = 1
    invoices: list[str] = field(default_factory=list)
    deals: list[str] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    dashboard: str = ""
    people: list[str] = field(default_factory=list)

    def as_json(self) -> str:
        return json.dumps(asdict(self))


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None


class Attack:
    """One attack under way: it counts the answers, and knows when every connection has done its first part."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.answers: Counter[str] = Counter()
        self.under_way = asyncio.Event()
        self._next_seconds = 0.0
        self._addresses = [f"127.66.{n}.9" for n in range(target.networks)]

    async def flood(
        self, connections: int, requests: Iterable[Request], *, refused_seconds: float = 0
    ) -> None:
        """So many connections take the requests in turn; each waits for its answer."""
        left = iter(requests)

        async def client(number: int, session: aiohttp.ClientSession) -> None:
            await asyncio.sleep(number / CONNECTIONS_PER_SECOND)
            for request in left:
                await self._turn(REQUESTS_PER_SECOND)
                if await self._send(session, request) in REFUSALS:
                    await asyncio.sleep(refused_seconds)

        async with AsyncExitStack() as opened, asyncio.TaskGroup() as clients:
            sessions = [await opened.enter_async_context(self._session(each)) for each in self._addresses]
            for number, session in zip(range(connections), itertools.cycle(sessions), strict=False):
                clients.create_task(client(number, session))
            self.under_way.set()

    async def look(self, per_second: int, requests: Iterable[Request]) -> None:
        """So many requests a second, whether earlier ones were answered or not."""
        async with self._session(self._addresses[0]) as session, asyncio.TaskGroup() as clients:
            self.under_way.set()
            for request in requests:
                clients.create_task(self._send(session, request))
                await self._turn(per_second)

    async def _send(self, session: aiohttp.ClientSession, request: Request) -> int | None:
        """The answer's status; None without one."""
        try:
            async with session.request(
                request.method,
                request.path,
                headers=request.headers,
                data=request.body,
                allow_redirects=False,
            ) as answer:
                await answer.read()
                self.answers[str(answer.status)] += 1
                return answer.status
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            self.answers[type(error).__name__] += 1
            await asyncio.sleep(0.1)  # seconds; a port that takes nobody in is not asked in a tight loop
            return None

    def _session(self, address: str) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            f"http://127.0.0.1:{self.target.port}",
            connector=aiohttp.TCPConnector(limit=0, local_addr=(address, 0)),
            timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )

    async def _turn(self, per_second: int) -> None:
        """Waits for the next moment at which a request may be sent."""
        now_seconds = monotonic_seconds()
        at_seconds = max(self._next_seconds, now_seconds)
        self._next_seconds = at_seconds + 1 / per_second
        await asyncio.sleep(at_seconds - now_seconds)


# -- what is sent


def _random_payments(_: Target) -> Iterator[Request]:
    while True:
        yield Request("GET", f"/pay/{uuid.uuid4()}")


def _wrong_keys(target: Target) -> Iterator[Request]:
    alphabet = string.ascii_letters + string.digits
    prefix, _, tail = target.api_key.partition("_")
    while True:
        key = f"{prefix}_{''.join(secrets.choice(alphabet) for _ in tail)}"
        yield Request("GET", "/api/v1/currencies", {"X-Api-Key": key})


def _deep_pages(target: Target) -> Iterator[Request]:
    for number in itertools.count():
        page = f"/api/v1/invoices?per_page=500&page={380 - number % 20}"
        yield Request("GET", page, {"X-Api-Key": target.api_key})


def _resends(target: Target) -> Iterator[Request]:
    headers = {"X-Api-Key": target.api_key, "Content-Type": "application/json"}
    for invoice_id in itertools.cycle(target.events):
        yield Request("POST", f"/api/v1/invoices/{invoice_id}/webhooks/resend", headers)


def _parentheses(target: Target) -> Iterator[Request]:
    headers = {"X-Api-Key": target.api_key, "Content-Type": "application/json" + "(" * 2000}
    while True:
        yield Request("POST", "/api/v1/create-invoice", headers, b"{}")


def _large_orders(target: Target) -> Iterator[Request]:
    headers = {"X-Api-Key": target.api_key, "Content-Type": "application/json"}
    body = b'{"a":[' + b",".join([b"{}"] * (63 * KIBIBYTE // 3)) + b"]}"
    while True:
        yield Request("POST", "/api/v1/create-invoice", headers, body)


def _codes(target: Target) -> Iterator[Request]:
    for invoice_id in itertools.cycle(target.deals):
        yield Request("GET", f"/pay/{invoice_id}/qr.svg")


def _pages(target: Target) -> Iterator[Request]:
    for invoice_id in itertools.cycle(target.invoices):
        yield Request("GET", f"/pay/{invoice_id}/methods")


def _passwords(target: Target) -> Iterator[Request]:
    """Guesses, by turns at a person who exists and at one who does not."""
    headers = {"Sec-Fetch-Site": "same-origin", "Content-Type": "application/x-www-form-urlencoded"}
    for person in itertools.cycle(target.people):
        for email in (person, f"{secrets.token_hex(4)}@example.com"):
            body = urlencode({"email": email, "password": secrets.token_hex(8), "code": "000000"})
            yield Request("POST", f"{target.dashboard}/sign-in", headers, body.encode())


def _cookies(target: Target) -> Iterator[Request]:
    while True:
        headers = {"Cookie": f"fiatgate-dashboard={secrets.token_urlsafe(32)}"}
        yield Request("GET", f"{target.dashboard}/", headers)


Requests = Callable[[Target], Iterator[Request]]


def _flood(connections: int, requests: Requests) -> Callable[[Attack], Coroutine[Any, Any, None]]:
    return lambda attack: attack.flood(connections, requests(attack.target))


def _at_a_time(connections: int, requests: Requests) -> Callable[[Attack], Coroutine[Any, Any, None]]:
    return lambda attack: attack.flood(connections, requests(attack.target), refused_seconds=REFUSED_SECONDS)


ATTACKS: Final[dict[str, Callable[[Attack], Coroutine[Any, Any, None]]]] = {
    "catalog-hangs": lambda attack: attack.look(4, _pages(attack.target)),
    "payment-ids": _flood(400, _random_payments),
    "wrong-keys": _flood(800, _wrong_keys),
    "deep-pages": _at_a_time(8, _deep_pages),
    "resends": _at_a_time(8, _resends),
    "parentheses": _flood(16, _parentheses),
    "large-orders": lambda attack: attack.look(110, _large_orders(attack.target)),
    "qr-codes": _flood(64, _codes),
    "passwords": _flood(400, _passwords),
    "cookies": _flood(380, _cookies),
}


async def _run(name: str, target: Target) -> Counter[str]:
    attack = Attack(target)
    told_to_stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told_to_stop.set)
    task = asyncio.create_task(ATTACKS[name](attack))
    with suppress(TimeoutError):
        await asyncio.wait_for(attack.under_way.wait(), UNDER_WAY_SECONDS)
    sys.stdout.write("under way\n")
    sys.stdout.flush()
    with suppress(TimeoutError):
        await asyncio.wait_for(told_to_stop.wait(), LONGEST_SECONDS)
    if task.done():
        await task  # raises what ended it
    task.cancel()
    await asyncio.wait([task])
    return attack.answers


def main() -> int:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the stack has less, see bench_walls
    answers = uvloop.run(_run(sys.argv[1], Target(**json.load(sys.stdin))))
    sys.stdout.write(json.dumps(answers) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
