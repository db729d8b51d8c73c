"""From the commit of a terminal invoice to the merchant's endpoint, while the whole stack is at work.

    python -m benchmarks.bench_latency [--per-second 50] [--seconds 20]

Every purchase is made from nothing at an even pace: create-invoice over HTTP, SelectPaymentMethod and ConfirmDeal over
gRPC. A webhook's way begins when PostgreSQL commits the transaction that ended the invoice, by its own note of that
moment, and ends when the request is read. Limits: p50 <= 12 ms, p99 <= 30 ms, processor time of one purchase <= 18 ms.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import statistics
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass, field
from datetime import datetime

import aiohttp
import grpc
import psycopg2
import uvloop
from aiohttp import web

from benchmarks.bench_api import running_stack
from benchmarks.processor import processor_seconds
from benchmarks.report import Row, below, options, show
from deploy.local.ports import free_ports
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.invoices.v1.invoices_pb2_grpc import CheckoutServiceStub, DealDeskServiceStub
from kit.base.clock import SystemClock, monotonic_seconds
from kit.rpc.client import aio_channel
from tests.support.stack import Stack

MOST_P50_MS, MOST_P99_MS = 12, 30
MOST_PROCESSOR_MS = 18
METHOD = "eur-card"
WARM_UP_SECONDS = 3
LATE_SECONDS = 30


@dataclass
class Shop:
    """Its endpoint, and what it saw."""

    arrived_at: dict[str, datetime] = field(default_factory=dict)  # by external id
    doubled: int = 0
    _came: asyncio.Event = field(default_factory=asyncio.Event)

    async def hook(self, request: web.Request) -> web.Response:
        arrived = SystemClock().now()
        event = json.loads(await request.read())
        self.doubled += event["external_id"] in self.arrived_at
        self.arrived_at.setdefault(event["external_id"], arrived)
        self._came.set()
        return web.Response()

    async def has_seen(self, names: set[str]) -> None:
        while not self.arrived_at.keys() >= names:
            self._came.clear()
            await self._came.wait()


class Buyer:
    """Creates, chooses and has confirmed: the terminal state is committed when `buy` returns."""

    def __init__(
        self, stack: Stack, http: aiohttp.ClientSession, channel: grpc.aio.Channel, callback_url: str
    ) -> None:
        self._create_url = f"{stack.url}/api/v1/create-invoice"
        self._key = {"X-Api-Key": stack.demo["api_key"]}
        self._http = http
        self._callback_url = callback_url
        self._checkout, self._desk = CheckoutServiceStub(channel), DealDeskServiceStub(channel)

    async def buy(self, number: int) -> str:
        """The external id of a finished invoice."""
        name, invoice_id = await self.create(number)
        await self.confirm(await self.choose(invoice_id))
        return name

    async def create(self, number: int) -> tuple[str, str]:
        """External id and id of an invoice. Its amount is its own: open deals of one amount need accounts."""
        name = secrets.token_hex(8)
        order = {
            "amount": f"{100 + number // 100}.{number % 100:02}",
            "currency_code": "EUR",
            "customer_id": name,
            "external_id": name,
            "callback_url": self._callback_url,
        }
        async with self._http.post(self._create_url, json=order, headers=self._key) as answer:
            created = await answer.json()
            if answer.status != 201:
                raise RuntimeError(f"create-invoice: {answer.status} {created}")
        return name, created["invoice_id"]

    async def choose(self, invoice_id: str) -> str:
        """The id of the deal."""
        chosen = await self._checkout.SelectPaymentMethod(
            invoices_pb2.SelectPaymentMethodRequest(invoice_id=invoice_id, method_code=METHOD)
        )
        return chosen.invoice.deal.deal_id

    async def confirm(self, deal_id: str) -> None:
        await self._desk.ConfirmDeal(invoices_pb2.ConfirmDealRequest(deal_id=deal_id))


@asynccontextmanager
async def buying(stack: Stack) -> AsyncIterator[tuple[Shop, Buyer]]:
    """A shop with its endpoint, and its customers and operator."""
    shop = Shop()
    app = web.Application()
    app.router.add_post("/hook", shop.hook)
    runner = web.AppRunner(app)
    await runner.setup()
    port = free_ports(1)[0]
    await web.TCPSite(runner, "127.0.0.1", port).start()
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
            aio_channel(stack.addresses["invoices"], name="invoices") as channel,
        ):
            yield shop, Buyer(stack, http, channel, f"http://127.0.0.1:{port}/hook")
    finally:
        await runner.cleanup()


@dataclass(frozen=True, kw_only=True)
class Seen:
    """Webhooks by external id, those of the warm-up left out; how many came twice; and processor time by program of
    one purchase, milliseconds.
    """

    arrived_at: dict[str, datetime]
    doubled: int
    took_ms: dict[str, float]


async def _measure(stack: Stack, per_second: int, seconds: int) -> Seen:
    async with buying(stack) as (shop, buyer):
        for _ in range(10):  # PostgreSQL may not accept connections yet
            await asyncio.sleep(0.1)
            with suppress(RuntimeError, grpc.RpcError):
                await buyer.buy(0)
        before = processor_seconds(stack)
        started = monotonic_seconds()
        under_way = []
        for number in range(per_second * seconds):
            await asyncio.sleep(max(0.0, started + number / per_second - monotonic_seconds()))
            under_way.append(asyncio.create_task(buyer.buy(number)))
        bought = await asyncio.gather(*under_way)
        async with asyncio.timeout(LATE_SECONDS):
            await shop.has_seen(set(bought))
    after = processor_seconds(stack)
    return Seen(
        arrived_at={name: shop.arrived_at[name] for name in bought[per_second * WARM_UP_SECONDS :]},
        doubled=shop.doubled,
        took_ms={name: 1000 * (after[name] - before[name]) / len(bought) for name in after},
    )


def _let_commits_be_timed(stack: Stack) -> None:
    with closing(psycopg2.connect(stack.home.running_stack()["postgres_url"])) as connection:
        connection.autocommit = True
        connection.cursor().execute("ALTER SYSTEM SET track_commit_timestamp = on")
    stack.restart("postgres")
    stack.wait_until_ready()


def _commit_times(stack: Stack) -> dict[str, datetime]:
    """When each finished invoice was committed as such, its last change, by external id."""
    query = "SELECT external_id, pg_xact_commit_timestamp(xmin) FROM invoices WHERE finished_at IS NOT NULL"
    with (
        closing(psycopg2.connect(stack.database_urls["invoices"])) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(query)
        return dict(cursor.fetchall())


def measure(per_second: int, seconds: int) -> list[Row]:
    with running_stack() as stack:
        _let_commits_be_timed(stack)
        seen = uvloop.run(_measure(stack, per_second, seconds + WARM_UP_SECONDS))
        committed_at = _commit_times(stack)
    took = [1000 * (at - committed_at[name]).total_seconds() for name, at in seen.arrived_at.items()]
    centiles = statistics.quantiles(took, n=100)
    what = f"commit to request at {per_second} invoices/s"
    return [
        below(f"{what}, p50", centiles[49], MOST_P50_MS, "ms"),
        below(f"{what}, p99", centiles[98], MOST_P99_MS, "ms"),
        Row("webhooks, received twice", f"{len(took):,}, {seen.doubled}"),
        below("processor time of one purchase, all", sum(seen.took_ms.values()), MOST_PROCESSOR_MS, "ms"),
        *(Row(f"  {name}", f"{took_ms:.1f} ms") for name, took_ms in sorted(seen.took_ms.items())),
        Row("load average while measuring", f"{os.getloadavg()[0]:.1f}"),
    ]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--per-second", type=int, default=50)
    parser.add_argument("--seconds", type=int, default=20, help="measured, after three that are not")
    given = parser.parse_args()
    return show("Latency", measure(given.per_second, given.seconds))


if __name__ == "__main__":
    sys.exit(main())
