"""Webhook delivery: how fast a backlog drains beside a bare aiohttp loop, and how soon a fresh event arrives.

    python -m benchmarks.bench_webhooks [--events 5000] [--fresh 100]

Real PostgreSQL (with every wait for the disk), NATS, merchants and receiver in processes of their own; the engine in
this one. Every delivery is signed, sent, and recorded as the history shows it. Limits: throughput >= 0.15 of the bare
loop to the same receiver in the same run; median from the event's commit to its arrival, idle, under 50 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import cast
from uuid import UUID

import aiohttp
import uvloop
from sqlalchemy import text

from benchmarks.report import Row, at_least, below, show
from deploy.local import databases
from deploy.local.nats import Nats
from deploy.local.ports import free_ports
from deploy.local.postgres import Postgres
from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2, merchants_pb2_grpc
from kit import log, migrate
from kit.bus import Outgoing
from kit.clock import monotonic_seconds
from kit.ids import new_id
from kit.proto import timestamp_from
from kit.rpc.client import channel
from kit.worker import Stop, Worker
from services.webhooks import operations, workers
from services.webhooks.config import WebhooksSettings
from services.webhooks.domain import FinishedInvoice, signature
from services.webhooks.events import INVOICE_FINISHED_SUBJECT, finished_invoice_from_message
from services.webhooks.wiring import Deps, wire

LEAST_RATIO = 0.15
MOST_MEDIAN_MS = 50.0
BARE_CONCURRENCY = 64
ROUNDS = 3
WAIT_SECONDS = 300.0


# -- the receiver, a process of its own


class _Receiver(asyncio.Protocol):
    """Answers every POST with 200 and keeps when it came; GET tells all of it. As little as HTTP/1.1 needs."""

    arrivals: dict[str, float] = {}  # noqa: RUF012  shared by all connections on purpose

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
            after = end + 4 + int(headers.get("content-length", "0"))
            if len(self._data) < after:
                return
            self._data = self._data[after:]
            if head[0].startswith("GET"):
                body = json.dumps(self.arrivals).encode()
            else:
                body = b"ok"
                self.arrivals[headers.get("x-idempotency-key", "")] = monotonic_seconds()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


async def _receive(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(_Receiver, "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


# -- the stack


@dataclass(frozen=True)
class Bench:
    """The service under measure, in this process, and what is around it."""

    deps: Deps
    receiver_url: str
    merchant_id: UUID
    key_id: UUID

    def arrivals(self) -> dict[str, float]:
        with urllib.request.urlopen(self.receiver_url) as answer:
            arrivals: dict[str, float] = json.load(answer)
        return arrivals

    def message(self) -> invoices_pb2.InvoiceFinished:
        now = timestamp_from(self.deps.clock.now())
        return invoices_pb2.InvoiceFinished(
            event_id=str(new_id()),
            event_type="invoice.success",
            invoice_id=str(new_id()),
            merchant_id=str(self.merchant_id),
            key_id=str(self.key_id),
            external_id="order-4711",
            status=invoices_pb2.INVOICE_STATUS_SUCCESS,
            sub_status="successfully_paid",
            finished_at=now,
            expires_at=now,
            amount="100.50",
            currency_code="EUR",
            rate_usd="0.92",
            callback_url=self.receiver_url,
            success_url="https://shop.example.com/thanks",
            fail_url="https://shop.example.com/sorry",
        )

    def invoice(self) -> FinishedInvoice:
        return finished_invoice_from_message(self.message())


@contextmanager
def _process(command: Sequence[str], **environment: str) -> Iterator[None]:
    null = subprocess.DEVNULL
    with subprocess.Popen(command, env={**os.environ, **environment}, stdout=null, stderr=null) as process:
        try:
            yield
        finally:
            process.terminate()


@contextmanager
def _stack() -> Iterator[Bench]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres_port, nats_port, merchants_port, receiver_port = free_ports(4)
        postgres = Postgres(data=folder / "postgres" / "data", port=postgres_port, password="bench")
        postgres.initialise()
        stack.enter_context(_process(postgres.command()))
        nats = Nats(folder=folder / "nats", port=nats_port)
        nats.write_config()
        stack.enter_context(_process(nats.command()))
        wait_until(lambda: postgres.is_ready() and nats.is_ready(), "servers", timeout_seconds=30)
        urls = {}
        for service in ("merchants", "webhooks"):
            databases.ensure_role(postgres.url(), service, password="bench")
            databases.create_database(postgres.url(), service, owner=service)
            urls[service] = postgres.url(service, user=service, password="bench")
            migrate.upgrade(service, urls[service])
        stack.enter_context(
            _process(
                [sys.executable, "-m", "services.merchants", "run"],
                FIATGATE_MERCHANTS_DATABASE_URL=urls["merchants"],
                FIATGATE_MERCHANTS_ADDRESS=f"127.0.0.1:{merchants_port}",
                FIATGATE_NATS_URL=nats.url,
                FIATGATE_MASTER_KEYS=base64.b64encode(secrets.token_bytes(32)).decode(),
                FIATGATE_LOG_LEVEL="warning",
            )
        )
        stack.enter_context(_process([sys.executable, "-m", __spec__.name, "--receiver", str(receiver_port)]))
        merchant_id, key_id = _merchant(merchants_port)
        settings = WebhooksSettings(
            database_url=urls["webhooks"],
            bind="127.0.0.1:0",
            nats_url=nats.url,
            merchants_address=f"127.0.0.1:{merchants_port}",
            webhook_allow_private=True,
        )
        # One line per attempt is written as in production, only not to this screen.
        stack.enter_context(redirect_stderr(stack.enter_context(Path(os.devnull).open("w"))))
        log.configure("webhooks", settings)
        deps = wire(settings)
        bench = Bench(deps, f"http://127.0.0.1:{receiver_port}/hook", merchant_id, key_id)
        wait_until(lambda: _listens(receiver_port), "the receiver", timeout_seconds=30)
        deps.bus.start()
        yield bench
        deps.bus.close()
        deps.courier.close()
        deps.db.dispose()


def _merchant(port: int) -> tuple[UUID, UUID]:
    wait_until(lambda: _listens(port), "merchants", timeout_seconds=60)
    stub = merchants_pb2_grpc.MerchantsServiceStub(channel(f"127.0.0.1:{port}", name="merchants"))
    request = merchants_pb2.CreateMerchantRequest(name="Bench", owner_email="bench@example.com", active=True)
    merchant = stub.CreateMerchant(request).merchant
    key = stub.CreateApiKey(merchants_pb2.CreateApiKeyRequest(merchant_id=merchant.merchant_id))
    return UUID(merchant.merchant_id), UUID(key.key_id)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


# -- what is measured


async def _bare_loop(url: str, count: int) -> float:
    """Deliveries per second of aiohttp alone: the same signed body, nothing read from or written to a database."""
    body = b'{"event_id":"%s"}' % (b"x" * 500)
    left = iter(range(count))
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def send() -> None:
            for number in left:
                headers = {
                    "Content-Type": "application/json",
                    "X-Idempotency-Key": f"bare-{number}",
                    "X-Signature": signature("secret", "1700000000", body),
                    "X-Signature-Timestamp": "1700000000",
                }
                async with session.post(url, data=body, headers=headers) as answer:
                    await answer.read()

        started = monotonic_seconds()
        await asyncio.gather(*(send() for _ in range(BARE_CONCURRENCY)))
        return count / (monotonic_seconds() - started)


def _throughputs(bench: Bench, count: int) -> tuple[list[float], list[float]]:
    """Deliveries per second of the bare loop and of the engine, round by round: the machine's mood changes between.

    Beside each round of the engine stands the mean of the bare loop just before and just after it.
    """
    alone = [uvloop.run(_bare_loop(bench.receiver_url, count))]
    drained = []
    for _ in range(ROUNDS):
        drained.append(_drain(bench, count))
        alone.append(uvloop.run(_bare_loop(bench.receiver_url, count)))
    return [(before + after) / 2 for before, after in pairwise(alone)], drained


def _drain(bench: Bench, count: int) -> float:
    """Deliveries per second from a backlog of `count` due events until the last one is recorded."""
    with bench.deps.db.autocommit() as connection:
        connection.execute(text("TRUNCATE events, attempts RESTART IDENTITY"))
    for start in range(0, count, 500):
        with bench.deps.db.transaction() as tx:
            for _ in range(min(500, count - start)):
                operations.queue_webhook(bench.deps, tx, bench.invoice())
    with bench.deps.db.autocommit() as connection:
        connection.execute(text("ANALYZE events"))
    started = monotonic_seconds()
    with _running_engine(bench.deps):
        _wait_until_delivered(bench.deps, count)
        return count / (monotonic_seconds() - started)


def _wait_until_delivered(deps: Deps, count: int) -> None:
    delivered = text("SELECT count(*) FROM attempts WHERE status = 'success'")

    def all_are() -> bool:
        with deps.db.autocommit() as connection:
            return bool(connection.scalar(delivered) == count)

    wait_until(all_are, f"{count} deliveries", timeout_seconds=WAIT_SECONDS)


@contextmanager
def _running_engine(deps: Deps) -> Iterator[None]:
    stop = Stop()
    some: list[Worker] = [workers.engine(deps), workers.consumer(deps)]
    threads = [threading.Thread(target=each.run, args=(stop,)) for each in some]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def _latencies_ms(bench: Bench, count: int) -> tuple[list[float], list[float]]:
    """Of single fresh events on an idle engine: from their commit, and from their announcement over JetStream."""
    begun: dict[str, float] = {}
    announced: set[str] = set()
    with _running_engine(bench.deps):
        wait_until(lambda: bench.deps.bus.connected, "NATS", timeout_seconds=30)
        for number in range(2 * count + 1):
            message = bench.message()
            begun[message.event_id] = monotonic_seconds()
            if number % 2:
                with bench.deps.db.transaction() as tx:
                    operations.queue_webhook(bench.deps, tx, finished_invoice_from_message(message))
            else:
                fact = Outgoing(new_id(), INVOICE_FINISHED_SUBJECT, message.SerializeToString())
                announced.add(message.event_id)
                bench.deps.bus.publish([fact])
            _wait_until_delivered(bench.deps, len(begun))
    arrivals = bench.arrivals()
    first = next(iter(begun))  # its consumer was being made
    took = {key: 1000 * (arrivals[key] - at) for key, at in begun.items() if key != first}
    return (
        [took[key] for key in took if key not in announced],
        [took[key] for key in took if key in announced],
    )


def main() -> int:
    """Measures, prints the table, returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=5000, help="backlog to drain")
    parser.add_argument("--fresh", type=int, default=100, help="single events for the latency")
    parser.add_argument("--receiver", type=int, default=0, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.receiver:
        uvloop.run(_receive(given.receiver))
        return 0
    with _stack() as bench:
        committed, announced = _latencies_ms(bench, given.fresh)
        bare, drained = _throughputs(bench, given.events)
    ratio = statistics.median(engine / alone for engine, alone in zip(drained, bare, strict=True))
    rows = [
        Row("bare aiohttp loop", f"{statistics.median(bare):,.0f}/s"),
        Row("engine, backlog drained", f"{statistics.median(drained):,.0f}/s"),
        at_least(f"ratio, median of {ROUNDS} rounds", ratio, LEAST_RATIO),
        below("commit to arrival, idle, median", statistics.median(committed), MOST_MEDIAN_MS, "ms"),
        Row("commit to arrival, idle, p95", f"{statistics.quantiles(committed, n=20)[-1]:.1f} ms"),
        below(
            "announced over JetStream to arrival, median", statistics.median(announced), MOST_MEDIAN_MS, "ms"
        ),
    ]
    return show("webhooks", rows)


if __name__ == "__main__":
    sys.exit(main())
