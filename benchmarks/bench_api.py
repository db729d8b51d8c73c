"""create-invoice, get-invoice and the customer's page through the whole stack, beside the bare path.

    python -m benchmarks.bench_api [--requests 3000] [--rounds 3]

The rounds alternate, so that a slow minute of the machine hits all alike; the medians are compared. Limits: create >=
0.65 of the bare path, with the keys of 100 merchants in turn >= 0.6; get >= 0.75; the page, with methods to choose from
and with an account to pay to, >= 0.3. Processor time is that of the gateway and of the services behind it.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import psycopg2
import requests
import uvloop
from rich.progress import Progress

from benchmarks import bare
from benchmarks.processor import processor_seconds
from benchmarks.report import Row, at_least, options, show
from deploy.local import databases
from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from fiatgate.merchants.v1 import merchants_pb2 as pb
from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from kit.base.clock import monotonic_seconds
from kit.rpc.client import channel
from tests.support.stack import Stack

CLIENTS = 32
LEAST_CREATE = 0.65
LEAST_CREATE_OF_MANY = 0.6
LEAST_GET = 0.75
LEAST_PAGE = 0.3
GATEWAY_WORKERS = 2  # of both, as many as cores
MERCHANTS = 100
LEAST_SHOWN_MS = 0.005
PROGRAMS = ("gateway", "identity", "catalog", "invoices")  # those that a request goes through


@dataclass
class Load:
    """One kind of request: what it needs and what was measured, one rate per round.

    further_headers  of the following requests, in turn with `headers`
    processor_ms     of one request, by program, one figure per round
    """

    name: str
    method: str
    url: str
    headers: dict[str, str]
    expected_status: int
    further_headers: Sequence[dict[str, str]] = ()
    rates: list[float] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)
    processor_ms: list[dict[str, float]] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return statistics.median(self.rates)

    def forget(self) -> None:
        for measured in (self.rates, self.latencies_ms, self.processor_ms):
            measured.clear()


async def one_round(load: Load, bodies: Sequence[dict[str, Any] | None]) -> None:
    left = iter(bodies)
    headers = itertools.cycle((load.headers, *load.further_headers))
    # What comes compressed is read and left so: unpacking it is the browser's work, not ours.
    connector = aiohttp.TCPConnector(limit=CLIENTS)
    async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as session:

        async def client() -> None:
            for body in left:
                at = monotonic_seconds()
                async with session.request(load.method, load.url, json=body, headers=next(headers)) as answer:
                    content = await answer.read()
                if answer.status != load.expected_status:
                    raise RuntimeError(f"{load.name}: {answer.status} {content[:300]!r}")
                load.latencies_ms.append(1000 * (monotonic_seconds() - at))

        started = monotonic_seconds()
        await asyncio.gather(*(client() for _ in range(CLIENTS)))
        load.rates.append(len(bodies) / (monotonic_seconds() - started))


def orders(count: int) -> list[dict[str, Any] | None]:
    return [
        {
            "amount": "100.50",
            "currency_code": "EUR",
            "customer_id": f"c-{(name := secrets.token_hex(8))}",
            "external_id": f"o-{name}",
        }
        for _ in range(count)
    ]


def _nothing(count: int) -> list[dict[str, Any] | None]:
    return [None] * count


@contextmanager
def running_stack(**settings: str) -> Iterator[Stack]:
    """The stack of `make run`, with durable data, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder) / "home", settings=settings, durable=True)
        stack.start()
        try:
            yield stack
        finally:
            stack.stop()


@contextmanager
def _bare_path(stack: Stack) -> Iterator[str]:
    """The bare path's URL, on a database of its own in the stack's PostgreSQL."""
    admin = stack.home.running_stack()["postgres_url"]
    databases.ensure_role(admin, "bare", password="bare")
    databases.create_database(admin, "bare", owner="bare")
    host = admin.rpartition("@")[2].partition("/")[0]
    url = f"postgresql://bare:bare@{host}/bare"
    with psycopg2.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(bare.TABLE)
    connection.close()
    service_port, port = free_ports(2)
    with ExitStack() as processes:
        for arguments in (["serve", service_port, url], ["gateway", port, service_port, GATEWAY_WORKERS]):
            command = [sys.executable, "-m", "benchmarks.bare", *map(str, arguments)]
            process = subprocess.Popen(command, env=os.environ, stderr=subprocess.DEVNULL)
            processes.callback(process.wait, 10)
            processes.callback(process.terminate)
        base = f"http://127.0.0.1:{port}/"
        wait_until(lambda: _answers(base), "the bare path", timeout_seconds=30)
        yield base


def _answers(url: str) -> bool:
    probe = Load("probe", "POST", url, {}, 201)
    try:
        uvloop.run(one_round(probe, orders(1)))
    except (aiohttp.ClientError, RuntimeError):
        return False
    return True


def _with_a_method(stack: Stack) -> str:
    """The id of an invoice whose customer has chosen a method."""
    (order,) = orders(1)
    created = stack.request("POST", "/api/v1/create-invoice", json=order).json()
    chosen = requests.post(
        f"{stack.url}/pay/{created['invoice_id']}/methods", data={"method_code": "eur-card"}, timeout=15
    )
    chosen.raise_for_status()
    return str(created["invoice_id"])


def _merchants(stack: Stack, count: int) -> list[dict[str, str]]:
    """Makes merchants that sell what the demo merchant sells; returns the headers of their requests."""
    made = []
    with channel(stack.addresses["identity"], name="identity") as connected:
        stub = MerchantsServiceStub(connected)
        demo = stub.GetMerchant(pb.GetMerchantRequest(merchant_id=stack.demo["merchant_id"])).merchant
        for number in range(count):
            merchant = stub.CreateMerchant(
                pb.CreateMerchantRequest(
                    name=f"Shop {number}",
                    owner_email=f"shop{number}@example.com",
                    category_code=demo.category_code,
                    callback_url=demo.callback_url,
                    success_url=demo.success_url,
                    fail_url=demo.fail_url,
                    active=True,
                )
            ).merchant
            key = stub.CreateApiKey(pb.CreateApiKeyRequest(merchant_id=merchant.merchant_id))
            made.append({"X-Api-Key": key.api_key})
    return made


def _round(stack: Stack, load: Load, bodies: Sequence[dict[str, Any] | None]) -> None:
    before = processor_seconds(stack, PROGRAMS)
    uvloop.run(one_round(load, bodies))
    after = processor_seconds(stack, PROGRAMS)
    load.processor_ms.append({name: 1000 * (after[name] - before[name]) / len(bodies) for name in PROGRAMS})


def _processor_time(load: Load) -> Row:
    by_program = {name: statistics.median(each[name] for each in load.processor_ms) for name in PROGRAMS}
    each = ", ".join(f"{name} {ms:.2f}" for name, ms in by_program.items() if ms >= LEAST_SHOWN_MS)
    return Row(f"processor time of one {load.name}, ms", f"{sum(by_program.values()):.2f}: {each}")


def measure(per_round: int, rounds: int) -> list[Row]:
    """Rows: the rates, their ratios, the latencies of create, processor time."""
    settings = {
        "FIATGATE_GATEWAY_WORKERS": str(GATEWAY_WORKERS),
        "FIATGATE_NETWORK_PAGE_REQUESTS_PER_MINUTE": "0",
        "FIATGATE_PAGE_REQUESTS_PER_MINUTE": "0",  # all of them are for one payment
        "FIATGATE_RATE_LIMIT_PER_MINUTE": "0",
    }
    with running_stack(**settings) as stack, _bare_path(stack) as bare_url:
        key = {"X-Api-Key": stack.demo["api_key"]}
        api = f"{stack.url}/api/v1"
        straight = Load("bare path", "POST", bare_url, {}, 201)
        create = Load("create-invoice", "POST", f"{api}/create-invoice", key, 201)
        first, *others = _merchants(stack, MERCHANTS)
        several = Load(
            f"create-invoice, {MERCHANTS} merchants", "POST", f"{api}/create-invoice", first, 201, others
        )
        get = Load("get-invoice", "GET", f"{api}/invoices/{stack.demo['invoice_id']}", key, 200)
        choose = Load("page: choose a method", "GET", f"{stack.url}/pay/{stack.demo['invoice_id']}", {}, 200)
        pay = Load("page: pay", "GET", f"{stack.url}/pay/{_with_a_method(stack)}", {}, 200)
        work = (
            (straight, orders),
            (create, orders),
            (several, orders),
            (get, _nothing),
            (choose, _nothing),
            (pay, _nothing),
        )
        with Progress(transient=True) as progress:
            task = progress.add_task("rounds", total=(rounds + 1) * len(work))
            for number in range(rounds + 1):
                for load, bodies in work:
                    _round(stack, load, bodies(per_round if number else per_round // 4))
                    progress.advance(task)
                    if number == 0:  # warms caches, connections and statements up
                        load.forget()
    latency = statistics.quantiles(create.latencies_ms, n=100)
    return [
        *(Row(load.name, f"{load.per_second:,.0f}/s") for load, _ in work),
        at_least("create-invoice / bare path", create.per_second / straight.per_second, LEAST_CREATE),
        at_least(
            f"the same with {MERCHANTS} merchants' keys in turn",
            several.per_second / straight.per_second,
            LEAST_CREATE_OF_MANY,
        ),
        at_least("get-invoice / bare path", get.per_second / straight.per_second, LEAST_GET),
        *(
            at_least(f"{page.name} / bare path", page.per_second / straight.per_second, LEAST_PAGE)
            for page in (choose, pay)
        ),
        Row(f"create-invoice, {CLIENTS} clients, p50", f"{latency[49]:.0f} ms"),
        Row(f"create-invoice, {CLIENTS} clients, p99", f"{latency[98]:.0f} ms"),
        *map(_processor_time, (create, several, get)),
    ]


def main() -> int:
    parser = options(__doc__)
    parser.add_argument("--requests", type=int, default=3000, help="per round")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    return show("API", measure(given.requests, given.rounds))


if __name__ == "__main__":
    sys.exit(main())
