"""Failures after PostgreSQL was away for a while, step by step, at an even pace of new purchases.

    python -m benchmarks.bench_gap [--only CASE ...] [--per-second 20] [--away 20] [--watch 40]

A purchase goes over the customer's pages: create-invoice, the page, the choice of a method, "I have paid", the
operator's confirmation. Each step is tried again until it is answered, so those of the gap come back all at once.
PostgreSQL is stopped by SIGSTOP (`frozen`), or killed by `kill -9` and started again (`killed`). Patient clients wait
as long as the answer's Retry-After says, the others one second.

A failure is an answer of 429 or 5xx, or none. Limit: each step's last failure comes at most 15 s after PostgreSQL has
answered again, and every purchase is confirmed in the end. PostgreSQL answers again when it is thawed, or recovered.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import secrets
import signal
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeVar

import aiohttp
import psutil
import psycopg2
import uvloop
from grpc import aio

from benchmarks.bench_api import running_stack
from benchmarks.report import Row, below, show
from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.invoices.v1.invoices_pb2_grpc import DealDeskServiceStub
from kit.base.clock import monotonic_seconds
from kit.rpc.client import aio_channel, channel
from kit.rpc.errors import Refused
from tests.support.authors import act_as
from tests.support.stack import Stack

MOST_SECONDS: Final = 15
WARM_UP_SECONDS: Final = 8
LATE_SECONDS: Final = 120
BACK_SECONDS: Final = 120
ANSWER_SECONDS: Final = 20
IMPATIENT_SECONDS: Final = 1.0
USUAL_SECONDS: Final = 5.0
NETWORKS: Final = 64
"""Customers come from so many networks: the pages of one network have turns of their own."""
METHODS: Final = ("furikomi", "paypay")
ACCOUNTS: Final = 8
PLACES: Final = 1000
"""Of each account. Those of the demo world have fewer than purchases are held up."""
STEPS: Final = ("create", "page", "choose", "mark", "confirm")
DONE: Final = ("INVOICE_FINISHED", "DEAL_STATE_CONFLICT")
"""The reasons of a step that was done though nobody said so."""

T = TypeVar("T")

_DEAL = re.compile(r'name="deal_id" value="([^"]+)"')


@dataclass(frozen=True)
class Case:
    """One loss of PostgreSQL. `again_seconds`: of impatient clients; None: as the answer says."""

    name: str
    how: str
    again_seconds: float | None


CASES: Final = (
    Case("frozen", "frozen", None),
    Case("killed", "killed", None),
    Case("frozen, impatient", "frozen", IMPATIENT_SECONDS),
    Case("killed, impatient", "killed", IMPATIENT_SECONDS),
)


@dataclass(frozen=True)
class Call:
    """One try of a step. `code`: the HTTP status or the reason of a failure; empty when it was answered."""

    step: str
    began: float
    ended: float
    code: str


class Failed(Exception):
    """Not answered, or with "later": code, and the seconds after which the answer asks to try again."""

    def __init__(self, code: str, seconds: float = USUAL_SECONDS) -> None:
        super().__init__(code)
        self.code = code
        self.seconds = seconds


@dataclass
class Load:
    """The purchases under way, and all their calls."""

    stack: Stack
    again_seconds: float | None
    networks: Sequence[aiohttp.ClientSession]
    invoices: aio.Channel
    calls: list[Call] = field(default_factory=list)
    begun: int = 0
    confirmed: int = 0
    _numbers: Iterator[int] = field(default_factory=lambda: count(10_000))

    async def buy(self) -> None:
        """One purchase, to its confirmation."""
        self.begun += 1
        session = secrets.choice(self.networks)
        invoice_id = await self._until_answered("create", self._create(session))
        page = f"{self.stack.url}/pay/{invoice_id}"
        await self._until_answered("page", lambda: self._page(session, page))
        for method in (secrets.choice(METHODS), *METHODS):
            if await self._until_answered("choose", lambda: self._choose(session, page, method)):  # noqa: B023
                break
        shown = _DEAL.search(await self._until_answered("page", lambda: self._page(session, page)))
        if shown is None:
            raise RuntimeError(f"{page} shows no deal")
        deal_id = shown[1]
        form = {"deal_id": deal_id, "sender_name": "Alex"}
        await self._until_answered("mark", lambda: self._post(session, f"{page}/paid", form))
        await self._until_answered("confirm", lambda: self._confirm(deal_id))
        self.confirmed += 1

    async def _until_answered(self, step: str, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            began = monotonic_seconds()
            try:
                answer = await call()
            except Failed as failed:
                self.calls.append(Call(step, began, monotonic_seconds(), failed.code))
                await asyncio.sleep(self.again_seconds or failed.seconds)
            else:
                self.calls.append(Call(step, began, monotonic_seconds(), ""))
                return answer

    def _create(self, session: aiohttp.ClientSession) -> Callable[[], Awaitable[str]]:
        number = next(self._numbers)
        order = {
            "amount": str(number),
            "currency_code": "JPY",
            "customer_id": secrets.token_hex(8),
            "external_id": secrets.token_hex(8),
            "callback_url": "http://127.0.0.1:9/hook",
        }
        url, headers = f"{self.stack.url}/api/v1/create-invoice", {"X-Api-Key": self.stack.demo["api_key"]}

        async def create() -> str:
            status, _, text = await _send(session, "POST", url, json=order, headers=headers)
            found = json.loads(text)
            # When the first answer was lost, the second one names the invoice that exists.
            id: str = found["invoice_id"] if status == 201 else found["error"]["details"]["invoice_id"]
            return id

        return create

    async def _page(self, session: aiohttp.ClientSession, page: str) -> str:
        return (await _send(session, "GET", page))[2]

    async def _choose(self, session: aiohttp.ClientSession, page: str, method: str) -> bool:
        """Returns false where the page says that no account is free."""
        target = await self._post(session, f"{page}/methods", {"method_code": method})
        return "no_available_requisites" not in target

    async def _post(self, session: aiohttp.ClientSession, url: str, form: dict[str, str]) -> str:
        return (await _send(session, "POST", url, data=form, allow_redirects=False))[1]

    async def _confirm(self, deal_id: str) -> None:
        request = invoices_pb2.ConfirmDealRequest(deal_id=deal_id)
        try:
            await DealDeskServiceStub(self.invoices).ConfirmDeal(request)
        except Refused as refused:
            if refused.reason not in DONE:
                raise Failed(refused.reason) from None


async def _send(
    session: aiohttp.ClientSession, method: str, url: str, **options: Any
) -> tuple[int, str, str]:
    """Returns status, Location and body. Raises Failed."""
    try:
        async with session.request(method, url, **options) as answer:
            text = await answer.text()
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Failed(type(error).__name__) from None
    if answer.status == 429 or answer.status >= 500:
        raise Failed(str(answer.status), float(answer.headers.get("Retry-After", USUAL_SECONDS)))
    return answer.status, answer.headers.get("Location", ""), text


class Postgres:
    """The PostgreSQL of a stack, to be taken away."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._url = str(stack.home.running_stack()["postgres_url"])

    def take_away(self, how: str) -> Callable[[], None]:
        """Returns what brings it back, which returns once it answers."""
        processes = self._processes()
        for each in processes:
            each.send_signal(signal.SIGSTOP)
        if how == "killed":
            return self._killed(processes)

        def thaw() -> None:
            for each in processes:
                with suppress(psutil.NoSuchProcess):
                    each.send_signal(signal.SIGCONT)

        return thaw

    def _killed(self, frozen: Sequence[psutil.Process]) -> Callable[[], None]:
        with ThreadPoolExecutor(1) as threads:
            # Its supervisor would start it again at once, unless it has been told to stop it.
            stopping = threads.submit(self._stack.stop_program, "postgres")
            wait_until(
                lambda: self._stack.programs()["postgres"].state == "STOPPING",
                "PostgreSQL to be stopped",
                timeout_seconds=BACK_SECONDS,
                every_seconds=0.05,
            )
            for each in frozen:
                with suppress(psutil.NoSuchProcess):
                    each.kill()
            stopping.result()

        def start() -> None:
            self._stack.start_program("postgres")
            wait_until(self._answers, "PostgreSQL", timeout_seconds=BACK_SECONDS, every_seconds=0.05)

        return start

    def _processes(self) -> list[psutil.Process]:
        main = psutil.Process(self._stack.programs()["postgres"].process_id)
        return [main, *main.children(recursive=True)]

    def _answers(self) -> bool:
        try:
            psycopg2.connect(self._url, connect_timeout=2).close()
        except psycopg2.OperationalError:
            return False
        return True


@dataclass(frozen=True)
class Measured:
    """The calls of a case, the moment PostgreSQL was taken away and the one it answered again, and the purchases."""

    calls: Sequence[Call]
    away: float
    back: float
    begun: int
    confirmed: int
    busy: float


async def _measure(
    stack: Stack, case: Case, *, per_second: int, away_seconds: int, watch_seconds: int
) -> Measured:
    async with AsyncExitStack() as opened:
        timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
        networks = [
            await opened.enter_async_context(
                aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=0, local_addr=(f"127.1.{number}.1", 0)),
                    timeout=timeout,
                )
            )
            for number in range(NETWORKS)
        ]
        invoices = await opened.enter_async_context(aio_channel(stack.addresses["invoices"], name="invoices"))
        load, postgres = Load(stack, case.again_seconds, networks, invoices), Postgres(stack)
        purchases: list[asyncio.Task[None]] = []
        over = asyncio.Event()

        async def begin_purchases() -> None:
            started = monotonic_seconds()
            while not over.is_set():
                purchases.append(asyncio.create_task(load.buy()))
                await asyncio.sleep(max(0.0, started + len(purchases) / per_second - monotonic_seconds()))

        beginning = asyncio.create_task(begin_purchases())
        await asyncio.sleep(WARM_UP_SECONDS)
        bring_back = await asyncio.to_thread(postgres.take_away, case.how)
        away = monotonic_seconds()
        await asyncio.sleep(away_seconds)
        await asyncio.to_thread(bring_back)
        back = monotonic_seconds()
        await asyncio.sleep(watch_seconds)
        busy = os.getloadavg()[0]
        over.set()
        await beginning
        _, late = await asyncio.wait(purchases, timeout=LATE_SECONDS)
        for each in late:
            each.cancel()
        for each in purchases:
            if each.done() and not each.cancelled() and (error := each.exception()):
                raise error
        return Measured(load.calls, away, back, load.begun, load.confirmed, busy)


def _rows(case: Case, seen: Measured) -> Iterator[Row]:
    calls = defaultdict(list)
    for call in seen.calls:
        calls[call.step].append(call)
    for step in STEPS:
        yield from _rows_of_step(f"{case.name}: {step}", calls[step], seen)
    left = seen.begun - seen.confirmed
    yield Row(f"{case.name}: purchases not confirmed", f"{left} of {seen.begun}", "0", met=not left)
    yield Row(f"{case.name}: PostgreSQL away", f"{seen.back - seen.away:.1f} s")
    yield Row(f"{case.name}: load average", f"{seen.busy:.1f}")


def _rows_of_step(title: str, calls: Sequence[Call], seen: Measured) -> Iterator[Row]:
    after = [call for call in calls if call.ended > seen.back]
    failed = [call for call in after if call.code]
    last_seconds = max((call.ended - seen.back for call in failed), default=0.0)
    yield below(f"{title}, last failure", last_seconds, MOST_SECONDS, "s")
    codes = ", ".join(f"{number} x {code}" for code, number in Counter(each.code for each in failed).items())
    yield Row("  failures since PostgreSQL is back", codes or "none")
    took_ms = [
        1000 * (call.ended - call.began)
        for call in after
        if not call.code and call.began < seen.back + MOST_SECONDS
    ]
    if took_ms:
        answered = sum(not call.code and call.ended < seen.back + MOST_SECONDS for call in after)
        yield Row(
            "  answered within the limit's time, their p50",
            f"{answered}, {statistics.median(took_ms):.0f} ms",
        )


def main() -> int:
    act_as("benchmarks@harness")
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = [case.name for case in CASES]
    parser.add_argument(
        "--only", nargs="+", choices=names, default=names, metavar="CASE", help=", ".join(names)
    )
    parser.add_argument("--per-second", type=int, default=20)
    parser.add_argument("--away", type=int, default=20, help="seconds")
    parser.add_argument("--watch", type=int, default=40, help="seconds of load after PostgreSQL is back")
    given = parser.parse_args()
    rows: list[Row] = []
    for case in CASES:
        if case.name in given.only:
            with running_stack() as stack:
                _make_places(stack)
                measuring = _measure(
                    stack,
                    case,
                    per_second=given.per_second,
                    away_seconds=given.away,
                    watch_seconds=given.watch,
                )
                rows += _rows(case, uvloop.run(measuring))
    return show("Gap", rows)


def _make_places(stack: Stack) -> None:
    with channel(stack.addresses["invoices"], name="invoices") as invoices:
        desk = DealDeskServiceStub(invoices)
        for method in METHODS:
            for requisite in desk.ListRequisites(
                invoices_pb2.ListRequisitesRequest(method_code=method)
            ).requisites:
                desk.DisableRequisite(
                    invoices_pb2.DisableRequisiteRequest(requisite_id=requisite.requisite_id)
                )
            accounts = [
                invoices_pb2.NewRequisite(
                    holder="Gap", account=f"{method} {number}", bank="Bank", max_deals=PLACES
                )
                for number in range(ACCOUNTS)
            ]
            desk.AddRequisites(invoices_pb2.AddRequisitesRequest(method_code=method, requisites=accounts))


if __name__ == "__main__":
    sys.exit(main())
