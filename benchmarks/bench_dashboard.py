"""The merchant's dashboard: 1,000 members of 1,000 merchants signed in at once, with a million invoices.

    python -m benchmarks.bench_dashboard [--invoices 1000000] [--largest 300000] [--members 1000] [--seconds 60]

Each member looks at a page again every 30 seconds, at a time of its own: 33 page views a second in all. The first
merchant has 300,000 of the invoices, the others 700 each. A view lasts from the moment at which it was due to the last
byte, so a page that comes late delays the others in the figures too. Limits: p95 of the start page, of the lists of
webhooks and of invoices, and of the month's statement under 200 ms, and the same of the largest merchant, whose member
looks meanwhile; no view fails.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp
import grpc
import uvloop

from benchmarks.dashboard import months
from benchmarks.processor import processor_seconds
from benchmarks.report import Row, below, options, show
from fiatgate.merchants.v1 import merchants_pb2 as pb
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from kit.base.clock import monotonic_seconds
from kit.rpc.client import channel
from tests.console.house import House
from tests.support.stack import Stack

PAGE_MS: Final = 200
EVERY_SECONDS: Final = 30.0
WARM_SECONDS: Final = 10.0
LARGEST_EVERY_SECONDS: Final = 1.0
ANSWER_SECONDS: Final = 15
AT_ONCE: Final = 4
WORKERS: Final = 2
"""Of the dashboard, as many as cores."""
PAGES: Final = {
    "start page": "/",
    "list of webhooks": "/webhooks?state=all",
    "list of invoices": "/invoices",
    "the month's statement": "/balance",
}


@dataclass
class Views:
    """The views of one page: milliseconds of all members and of the largest merchant's, and those that failed."""

    took: list[float] = field(default_factory=list)
    of_largest: list[float] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    processor_ms: dict[str, float] = field(default_factory=dict)


@contextmanager
def _stack(**settings: str) -> Iterator[Stack]:
    """A stack that does not wait for the disk: the pages only read."""
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder) / "home", settings=settings)
        stack.start()
        try:
            yield stack
        finally:
            stack.stop()


@contextmanager
def _house(stack: Stack) -> Iterator[House]:
    urls = stack.home.running_stack()["consoles"]
    with grpc.insecure_channel(stack.addresses["identity"]) as accounts:
        yield House(urls["console-desk"], urls["console-dashboard"], stack, accounts)


def _merchants(stack: Stack, count: int) -> list[str]:
    with channel(stack.addresses["identity"], name="identity") as connected:
        stub = MerchantsServiceStub(connected)
        demo = stub.GetMerchant(pb.GetMerchantRequest(merchant_id=stack.demo["merchant_id"])).merchant

        def one(number: int) -> str:
            request = pb.CreateMerchantRequest(
                name=f"Shop {number}",
                owner_email=f"shop{number}@example.com",
                category_code=demo.category_code,
                callback_url=demo.callback_url,
                success_url=demo.success_url,
                fail_url=demo.fail_url,
                active=True,
            )
            return stub.CreateMerchant(request).merchant.merchant_id

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(one, range(count)))


def _signed_in(house: House, merchants: Sequence[str]) -> list[str]:
    """Returns the Cookie header of an owner of each merchant, who has accepted an invitation."""

    def one(merchant: str) -> str:
        person = house.person("owner", merchant=merchant)
        return "; ".join(f"{each.name}={each.value}" for each in person.http.cookies)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(one, merchants))


async def _look(http: aiohttp.ClientSession, url: str, cookie: str, due: float, views: Views) -> float:
    """One view; returns the milliseconds since it was due."""
    headers = {"Cookie": cookie, "Accept-Encoding": "gzip"}
    try:
        async with http.get(url, headers=headers, allow_redirects=False) as answer:
            body = await answer.read()
    except (aiohttp.ClientError, TimeoutError) as error:
        views.failed.append(repr(error))
    else:
        if answer.status != 200 or b"do not answer" in body or b"does not answer" in body:
            views.failed.append(str(answer.status))
    return 1000 * (monotonic_seconds() - due)


async def _views(base: str, path: str, cookies: Sequence[str], seconds: float) -> Views:
    """Has each member look every EVERY_SECONDS, and the one of the largest merchant more often."""
    views = Views()
    timeout = aiohttp.ClientTimeout(total=ANSWER_SECONDS)
    # A browser has closed its connection before it looks again.
    connector = aiohttp.TCPConnector(limit=0, force_close=True)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=jar, timeout=timeout, auto_decompress=True
    ) as http:
        began = monotonic_seconds()

        async def member(cookie: str, first: float, every: float, took: list[float]) -> None:
            at = first
            while at < WARM_SECONDS + seconds:
                await asyncio.sleep(began + at - monotonic_seconds())
                ms = await _look(http, base + path, cookie, began + at, views)
                if at >= WARM_SECONDS:
                    took.append(ms)
                at += every

        places = random.Random(1)
        await asyncio.gather(
            member(cookies[0], 0, LARGEST_EVERY_SECONDS, views.of_largest),
            *(
                member(each, places.uniform(0, EVERY_SECONDS), EVERY_SECONDS, views.took)
                for each in cookies[1:]
            ),
        )
    return views


def _measured(stack: Stack, base: str, path: str, cookies: Sequence[str], seconds: float) -> Views:
    before = processor_seconds(stack)
    views = uvloop.run(_views(base, path, cookies, seconds))
    number = (WARM_SECONDS + seconds) * ((len(cookies) - 1) / EVERY_SECONDS + 1 / LARGEST_EVERY_SECONDS)
    after = processor_seconds(stack)
    views.processor_ms = {name: 1000 * (after[name] - before[name]) / number for name in before}
    return views


def _rows(page: str, views: Views, *, per_second: float) -> list[Row]:
    parts = statistics.quantiles(views.took, n=100)
    largest = statistics.quantiles(views.of_largest, n=100)
    whole = sum(views.processor_ms.values())
    most = sorted(views.processor_ms.items(), key=lambda each: -each[1])[:4]
    return [
        below(f"{page}, p95 at {per_second:.0f}/s", parts[94], PAGE_MS, "ms"),
        Row(f"{page}, p50, p99", f"{parts[49]:.0f} ms, {parts[98]:.0f} ms"),
        below(f"{page} of the largest merchant, p95", largest[94], PAGE_MS, "ms"),
        Row(f"{page}, views that failed", f"{len(views.failed)}", "0", not views.failed),
        Row(
            f"{page}, processor time of a view, ms",
            f"{whole:.0f}: " + ", ".join(f"{name} {ms:.0f}" for name, ms in most),
        ),
    ]


def measure(made: months.Months, members: int, seconds: float) -> list[Row]:
    settings = {
        # One machine signs all of them in: a member does not.
        "FIATGATE_DASHBOARD_REQUESTS_PER_MINUTE": "0",
        "FIATGATE_DASHBOARD_WORKERS": str(WORKERS),
    }
    rows: list[Row] = []
    with ExitStack() as opened:
        stack = opened.enter_context(_stack(**settings))
        house = opened.enter_context(_house(stack))
        merchants = _merchants(stack, members)
        cookies = _signed_in(house, merchants)
        months.make(stack, made, merchants)
        per_second = members / EVERY_SECONDS
        for page, path in PAGES.items():
            views = _measured(stack, house.dashboard, path, cookies, seconds)
            for each in sorted({*views.failed}):
                sys.stderr.write(f"{page}: {views.failed.count(each)} times {each}\n")
            rows += _rows(page, views, per_second=per_second)
    return [
        *rows,
        Row("load average while measuring", f"{os.getloadavg()[0]:.1f}"),
    ]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--invoices", type=int, default=1_000_000)
    parser.add_argument("--largest", type=int, default=300_000)
    parser.add_argument("--members", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    return show(
        "Dashboard", measure(months.Months(given.invoices, given.largest), given.members, given.seconds)
    )


if __name__ == "__main__":
    sys.exit(main())
