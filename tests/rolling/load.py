"""Merchants, customers, an operator and people in the console who go on as if nothing happened: so many requests a
second.
"""

import asyncio
import json
import random
import re
import socket
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1.invoices_pb2_grpc import DealDeskServiceStub
from kit.base.clock import monotonic_seconds
from kit.rpc.client import aio_channel
from kit.rpc.errors import Refused
from tests.e2e.market import FORM, METHOD, Shop
from tests.faults.journal import Journal
from tests.rolling.cluster import HTTP_PORT, Cluster
from tests.support.visitors import PAGES, Visitor

CONNECTIONS: Final = 100
LAG_SECONDS: Final = 0.1
HTTP_SECONDS: Final = 15
TRIES: Final = 2
PAUSE_MOST_SECONDS: Final = 5.0
MIX: Final = {"create": 5, "read": 65, "list": 10, "page": 15, "person": 4, "buy": 1}


@dataclass
class Seen:
    """What became of the requests.

    retried    of them, those whose first try was answered with 503 or not at all: why, and how often
    failed     those that came to nothing
    seconds    from the first try to the answer
    asked_seconds  how long it was asked
    """

    requests: int = 0
    retried: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    asked_seconds: float = 0.0

    @property
    def per_second(self) -> float:
        """Fewer than were to be: the machine could not keep up, the load and the stack together."""
        return self.requests / self.asked_seconds


class _OneOfTheReady(AbstractResolver):
    """A new connection goes to any ready pod, and stays there as long as both want it: what a Service does."""

    def __init__(self, ready: Callable[[str], Sequence[str]], chance: random.Random) -> None:
        self._ready = ready
        self._chance = chance

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        address = self._chance.choice(self._ready(host))
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
        ]

    async def close(self) -> None:
        """Nothing is open."""


def _a_pod(cluster: Cluster, surface: str) -> str:
    return cluster.endpoints.of(f"console-{surface}")[0]


class Load:
    """One merchant's shop and its customers. `run` from a thread of its own, until it is told to stop."""

    def __init__(
        self, cluster: Cluster, shop: Shop, *, per_second: int, callback: str, journal: Journal, seed: int
    ) -> None:
        self._people = [
            Visitor.by_link(surface, f"http://{_a_pod(cluster, surface)}:{HTTP_PORT}", link)
            for surface, link in cluster.links().items()
        ]
        self._cluster = cluster
        self._per_second = per_second
        self._shop = shop
        self._callback = callback
        self._journal = journal
        self._chance = random.Random(seed)
        self._unread: deque[str] = deque()
        self._created: list[str] = []
        self.seen = Seen()

    def run(self, over: Callable[[], bool]) -> None:
        """Ask until `over`, then once more after every invoice that nobody has read yet."""
        asyncio.run(self._run(over))

    async def _run(self, over: Callable[[], bool]) -> None:
        resolver = _OneOfTheReady(self._cluster.endpoints.of, self._chance)
        connector = aiohttp.TCPConnector(
            limit=CONNECTIONS, resolver=resolver, use_dns_cache=False, keepalive_timeout=60
        )
        async with (
            aiohttp.ClientSession(
                connector=connector, timeout=aiohttp.ClientTimeout(total=HTTP_SECONDS)
            ) as self._http,
            aio_channel(self._cluster.address("invoices"), name="invoices") as channel,
        ):
            self._http._retry_connection = False  # its own second try would be one that nobody counts
            self._desk: Any = DealDeskServiceStub(channel)
            room = asyncio.Semaphore(CONNECTIONS)
            async with asyncio.TaskGroup() as under_way:
                begun = due = monotonic_seconds()
                while not over():
                    await room.acquire()
                    under_way.create_task(self._one()).add_done_callback(lambda _: room.release())
                    # What a machine can't keep up with is not asked all at once later.
                    due = max(due + 1 / self._per_second, monotonic_seconds() - LAG_SECONDS)
                    await asyncio.sleep(due - monotonic_seconds())
                self.seen.asked_seconds = monotonic_seconds() - begun
            while self._unread:
                await self._read(self._unread.popleft())

    async def _one(self) -> None:
        what = self._chance.choices(list(MIX), list(MIX.values()))[0]
        if what == "create" or not self._created:
            await self._create()
        elif what == "read":
            await self._read(self._unread.popleft() if self._unread else self._chance.choice(self._created))
        elif what == "list":
            await self._ask("list", "GET", "/api/v1/invoices?per_page=5")
        elif what == "page":
            await self._ask("page", "GET", f"/pay/{self._chance.choice(self._created)}")
        elif what == "person":
            await self._look(self._chance.choice(self._people))
        else:
            await self._buy()

    async def _look(self, person: Visitor) -> None:
        """A page of a person who signed in before: a way to the sign-in page is no answer."""
        url = f"http://console-{person.surface}:{HTTP_PORT}{PAGES[person.surface]}"
        await self._ask(person.surface, "GET", url, cookies=person.cookies, allow_redirects=False)

    async def _create(self) -> str | None:
        body = self._shop.body(callback_url=self._callback)
        answer = await self._ask(
            "create", "POST", "/api/v1/create-invoice", json=body, sent=body, fine=(201, 409)
        )
        if answer is None:
            return None
        created = json.loads(answer)
        # When the first answer was lost, the second names the invoice that exists (docs/api.md#create-invoice).
        id: str = created.get("invoice_id") or created["error"]["details"]["invoice_id"]
        self._unread.append(id)
        self._created.append(id)
        return id

    async def _read(self, id: str) -> None:
        await self._ask("read", "GET", f"/api/v1/invoices/{id}", invoice_id=id)

    async def _buy(self) -> None:
        """A customer who pays, and the operator who sees the money."""
        if (id := await self._create()) is None:
            return
        page = await self._ask(
            "choose", "POST", f"/pay/{id}/methods", data={"method_code": METHOD}, headers=FORM
        )
        found = re.search(r'name="deal_id" value="([^"]+)"', page or "")
        if found is None:
            self.seen.failed.append(f"no deal on the page of {id}: {(page or '')[:300]}")
            return
        await self._ask("paid", "POST", f"/pay/{id}/paid", data={"deal_id": found[1]}, headers=FORM)
        await self._confirm(found[1])

    async def _confirm(self, deal_id: str) -> None:
        self.seen.requests += 1
        for number in range(TRIES):
            try:
                await self._desk.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal_id))
                return
            except Refused as refused:
                if refused.reason == "DEAL_STATE_CONFLICT" and number:
                    return  # the first one was done
                self._again(number, "confirm", str(refused))

    async def _ask(
        self, what: str, method: str, path: str, *, fine: Sequence[int] = (200,), **rest: Any
    ) -> str | None:
        """The answer's body; None when there was none that is fine. A second try after no answer, and after 503 when
        the time of its Retry-After has passed.
        """
        noted = {name: value for name, value in rest.items() if name in ("sent", "invoice_id")}
        sending = {name: value for name, value in rest.items() if name not in noted}
        headers = {"X-Api-Key": self._shop.api_key} | sending.pop("headers", {})
        began = monotonic_seconds()
        self.seen.requests += 1
        for number in range(TRIES):
            status, body, pause_seconds = await self._try(method, path, headers=headers, **sending)
            if noted:  # of what the checker judges
                began_and_ended = {"began": began, "ended": monotonic_seconds()}
                self._journal.note(
                    what=what,
                    phase="faults",
                    merchant_id=self._shop.merchant_id,
                    **noted,
                    **began_and_ended,
                    http=status,
                    body=body,
                )
            if status in fine:
                self.seen.seconds.append(monotonic_seconds() - began)
                return body
            if status not in (None, 503):
                self.seen.failed.append(f"{what}: {status} {body[:300]}")
                return None
            self._again(number, what, body if status is None else f"{status} {body}")
            await asyncio.sleep(pause_seconds)
        return None

    async def _try(self, method: str, path: str, **rest: Any) -> tuple[int | None, str, float]:
        """Status, body, and the time after which it may be asked again; without an answer no status, and the error."""
        try:
            url = path if path.startswith("http") else self._shop.url + path
            async with self._http.request(method, url, **rest) as answer:
                pause_seconds = min(float(answer.headers.get("Retry-After", "0")), PAUSE_MOST_SECONDS)
                return answer.status, await answer.text(), pause_seconds
        except (aiohttp.ClientError, OSError) as error:
            return None, type(error).__name__, 0

    def _again(self, number: int, what: str, why: str) -> None:
        """Once; the second time it has failed."""
        if number + 1 < TRIES:
            kind = f"{what}: {why[:120]}"
            self.seen.retried[kind] = self.seen.retried.get(kind, 0) + 1
        else:
            self.seen.failed.append(f"{what}: {why[:300]}")
