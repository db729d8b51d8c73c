"""The service under measure, in this process, with real PostgreSQL, NATS, merchants and receiver in their own."""

from __future__ import annotations

import base64
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from benchmarks.delivery.receiver import HOSTS
from deploy import nats_rights
from deploy.local import databases
from deploy.local.nats import Nats
from deploy.local.ports import free_ports
from deploy.local.postgres import Postgres
from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2, merchants_pb2_grpc
from kit.base.ids import new_id
from kit.base.proto import timestamp_from
from kit.db import migrate
from kit.events.bus.connection import Bus
from kit.events.bus.stream import OwnStream
from kit.events.signing import Signer, new_private_key
from kit.observe import log
from kit.process.memory import settle_memory
from kit.rpc.client import channel
from kit.work.worker import Stop, Worker
from services.invoices.events import CONSUMERS
from services.webhooks import workers
from services.webhooks.config import WebhooksSettings
from services.webhooks.wiring import Deps, wire


@dataclass(frozen=True)
class Shop:
    """A merchant with its key."""

    merchant_id: UUID
    key_id: UUID


@dataclass(frozen=True)
class Bench:
    """The service under measure, in this process, and what is around it."""

    deps: Deps
    invoices_bus: Bus
    receiver_port: int
    shop: Shop
    attacker: Shop
    environment: Mapping[str, str]
    admin_url: str

    @property
    def receiver_url(self) -> str:
        return f"http://127.0.0.1:{self.receiver_port}/hook"

    def bad_urls(self, path: str, count: int) -> list[str]:
        """Endpoints of one kind that disturbs, each a destination of its own."""
        return [f"http://{host}:{self.receiver_port}{path}" for host in HOSTS[:count]]

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
            merchant_id=str(self.shop.merchant_id),
            key_id=str(self.shop.key_id),
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

    @contextmanager
    def work_processes(self, count: int) -> Iterator[None]:
        """`python -m services.webhooks work`, as many of them."""
        command = [sys.executable, "-m", "services.webhooks", "work"]
        with ExitStack() as processes:
            for port in free_ports(count):
                bind = {"FIATGATE_WEBHOOKS_BIND": f"127.0.0.1:{port}"}
                processes.enter_context(_process(command, **{**self.environment, **bind}))
            yield

    @contextmanager
    def workers(self, *more: Worker) -> Iterator[None]:
        """The engine and the consumer in this process, and whatever else."""
        stop = Stop()
        some: list[Worker] = [workers.engine(self.deps), workers.consumer(self.deps), *more]
        threads = [threading.Thread(target=each.run, args=(stop,)) for each in some]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()


@contextmanager
def _process(command: Sequence[str], **environment: str) -> Iterator[None]:
    null = subprocess.DEVNULL
    with subprocess.Popen(command, env={**os.environ, **environment}, stdout=null, stderr=null) as started:
        try:
            yield
        finally:
            started.terminate()


@contextmanager
def running_bench() -> Iterator[Bench]:
    """All of it, from nothing."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        postgres_port, nats_port, merchants_port, receiver_port = free_ports(4)
        postgres = Postgres(data=folder / "postgres" / "data", port=postgres_port, password="bench")
        postgres.initialise()
        stack.enter_context(_process(postgres.command()))
        passwords = {user: secrets.token_urlsafe(24) for user in nats_rights.USERS}
        nats = Nats(folder=folder / "nats", port=nats_port, passwords=passwords)
        nats.write_config()
        stack.enter_context(_process(nats.command()))
        wait_until(lambda: postgres.is_ready() and nats.is_ready(), "servers", timeout_seconds=30)
        urls = {service: _migrated(postgres, service) for service in ("identity", "webhooks")}
        stack.enter_context(
            _process(
                [sys.executable, "-m", "services.identity", "run"],
                FIATGATE_IDENTITY_DATABASE_URL=urls["identity"],
                FIATGATE_IDENTITY_ADDRESS=f"127.0.0.1:{merchants_port}",
                FIATGATE_MASTER_KEYS=base64.b64encode(secrets.token_bytes(32)).decode(),
                FIATGATE_IDENTITY_SEAL_KEYS=new_private_key(),
                **dict.fromkeys(("FIATGATE_DESK_URL", "FIATGATE_DASHBOARD_URL"), "http://localhost:1"),
                FIATGATE_LOG_LEVEL="warning",
            )
        )
        stack.enter_context(
            _process([sys.executable, "-m", "benchmarks.delivery.receiver", str(receiver_port)])
        )
        signer = Signer(new_private_key())
        settings = WebhooksSettings(
            database_url=urls["webhooks"],
            bind="127.0.0.1:0",
            nats_url=nats.url("webhooks"),
            identity_address=f"127.0.0.1:{merchants_port}",
            webhook_allow_private=True,
            fact_public_keys=(signer.public_key,),
            seal_keys=(new_private_key(),),
        )
        # One line per attempt is written as in production, only not to this screen.
        stack.enter_context(redirect_stderr(stack.enter_context(Path(os.devnull).open("w"))))
        log.configure("webhooks", settings)
        deps = wire(settings)
        invoices_bus = Bus(
            nats.url("invoices"), name="invoices", stream=OwnStream(replicas=1, consumers=CONSUMERS)
        )
        stack.callback(invoices_bus.close)
        invoices_bus.start()
        shop, attacker = _shop(merchants_port), _shop(merchants_port)
        environment, admin_url = _environment(settings), postgres.url("webhooks")
        bench = Bench(deps, invoices_bus, receiver_port, shop, attacker, environment, admin_url)
        wait_until(lambda: _listens(receiver_port), "the receiver", timeout_seconds=30)
        deps.bus.start()
        settle_memory()  # as every process does once it has started
        yield bench
        deps.bus.close()
        deps.courier.close()
        deps.db.dispose()


def _environment(settings: WebhooksSettings) -> dict[str, str]:
    """The same settings for a process."""
    return {
        "FIATGATE_WEBHOOKS_DATABASE_URL": settings.database_url,
        "FIATGATE_WEBHOOKS_ADDRESS": f"127.0.0.1:{free_ports(1)[0]}",
        "FIATGATE_IDENTITY_ADDRESS": settings.identity_address,
        "FIATGATE_WEBHOOKS_NATS_URL": settings.nats_url,
        "FIATGATE_WEBHOOK_ALLOW_PRIVATE": "on",
        "FIATGATE_FACT_PUBLIC_KEYS": ",".join(settings.fact_public_keys),
        "FIATGATE_WEBHOOKS_SEAL_KEYS": ",".join(settings.seal_keys),
    }


def _migrated(postgres: Postgres, service: str) -> str:
    """The URL of the service's database, made with its two roles."""
    owner = databases.owner_of(service)
    for role in (service, owner):
        databases.ensure_role(postgres.url(), role, password="bench")
    databases.create_database(postgres.url(), service, owner=owner)
    migrate.upgrade(service, postgres.url(service, user=owner, password="bench"), role=service)
    return postgres.url(service, user=service, password="bench")


def _shop(port: int) -> Shop:
    wait_until(lambda: _listens(port), "merchants", timeout_seconds=60)
    stub = merchants_pb2_grpc.MerchantsServiceStub(channel(f"127.0.0.1:{port}", name="identity"))
    request = merchants_pb2.CreateMerchantRequest(name="Bench", owner_email="bench@example.com", active=True)
    merchant = stub.CreateMerchant(request).merchant
    key = stub.CreateApiKey(merchants_pb2.CreateApiKeyRequest(merchant_id=merchant.merchant_id))
    return Shop(UUID(merchant.merchant_id), UUID(key.key_id))


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
