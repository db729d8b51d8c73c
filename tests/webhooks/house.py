"""The webhooks service in the test's own process, on a real database, beside a real identity service."""

import hashlib
import hmac
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg2
from sqlalchemy import text

from deploy.local.waiting import wait_until
from fiatgate.merchants.v1 import merchants_pb2, merchants_pb2_grpc
from kit.base.clock import Clock
from kit.base.ids import new_id
from kit.rpc.client import channel
from kit.rpc.server import RpcServer
from kit.work.worker import Stop, Worker
from services.identity import rpc as merchants_rpc
from services.identity.config import IdentitySettings
from services.identity.wiring import wire as wire_merchants
from services.webhooks import workers
from services.webhooks.config import WebhooksSettings
from services.webhooks.domain import FinishedInvoice
from services.webhooks.operations import desk, queueing, reading, resending
from services.webhooks.store import claims
from services.webhooks.store.stages import Claimed, LaneKey, Rooms
from services.webhooks.store.views import AttemptView, EventHistory, EventView
from services.webhooks.wiring import Deps, wire
from tests.support.clock import START, ManualClock
from tests.support.databases import past_all_rules
from tests.support.receiver import Received
from tests.support.signing import PUBLIC_KEYS, SEAL_KEY

WAIT_SECONDS = 60.0


class MerchantsHouse:
    """A real identity service on loopback, and one merchant of it."""

    def __init__(self, database_url: str) -> None:
        settings = IdentitySettings(
            seal_keys=(SEAL_KEY,),
            database_url=database_url,
            bind="127.0.0.1:0",
            desk_url="http://localhost:8081",
            dashboard_url="http://localhost:8082",
            master_keys=("A" * 43 + "=",),
            webhook_allow_private=True,
        )
        self._deps = wire_merchants(settings)
        self._server = RpcServer()
        merchants_rpc.add_to(self._server, self._deps)
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()
        self._channel = channel(self.address, name="identity")
        self.stub = merchants_pb2_grpc.MerchantsServiceStub(self._channel)

    def merchant(self) -> UUID:
        made = self.stub.CreateMerchant(
            merchants_pb2.CreateMerchantRequest(name="Shop", owner_email="shop@example.com", active=True)
        )
        return UUID(made.merchant.merchant_id)

    def key(self, merchant_id: UUID) -> tuple[UUID, str]:
        """A new key of the merchant: its id and the secret that signs."""
        made = self.stub.CreateApiKey(merchants_pb2.CreateApiKeyRequest(merchant_id=str(merchant_id)))
        return UUID(made.key_id), made.secret

    def deactivate(self, key_id: UUID) -> None:
        self.stub.DeactivateApiKey(merchants_pb2.DeactivateApiKeyRequest(key_id=str(key_id)))

    def close(self) -> None:
        self._channel.close()
        self._server.stop(0).wait()
        self._deps.db.dispose()


class House:
    """One webhooks process of a test: its parts, and short ways to what tests ask again and again."""

    def __init__(
        self, database_url: str, merchants: MerchantsHouse, *, clock: Clock | None = None, **settings: Any
    ) -> None:
        self.merchants = merchants
        self.deps: Deps = wire(
            WebhooksSettings(
                **{
                    "database_url": database_url,
                    "bind": "127.0.0.1:0",
                    "identity_address": merchants.address,
                    "webhook_allow_private": True,
                    "fact_public_keys": PUBLIC_KEYS,
                    "seal_keys": (SEAL_KEY,),
                    **settings,
                }
            ),
            clock=clock,
        )
        self.engine_worker = workers.engine(self.deps)
        self.merchant_id = merchants.merchant()
        self.key_id, self.secret = merchants.key(self.merchant_id)

    @property
    def clock(self) -> ManualClock:
        assert isinstance(self.deps.clock, ManualClock)
        return self.deps.clock

    def close(self) -> None:
        self.deps.courier.close()
        self.deps.db.dispose()

    # -- doing

    def queue(self, callback_url: str | None, **facts: Any) -> UUID:
        """Queue a finished invoice's webhook as the consumer does; its invoice id."""
        invoice = finished(
            **{"merchant_id": self.merchant_id, "key_id": self.key_id, **facts}, callback_url=callback_url
        )
        with self.deps.db.transaction() as tx:
            queueing.queue_webhook(self.deps, tx, invoice)
        return invoice.invoice_id

    @contextmanager
    def engine(self) -> Iterator[Stop]:
        """The delivery engine running; stopped in good order at the end, or before by its `Stop`."""
        with running([self.engine_worker]) as stop:
            yield stop

    def claim(self, *, limit: int = 10, worker: str = "another", rooms: Rooms | None = None) -> list[Claimed]:
        """Claim due events as another engine would: `limit` in all, or what `rooms` says."""
        now = self.deps.clock.now()
        until = now + timedelta(seconds=self.deps.settings.lease_seconds)
        lease = claims.Lease(token=new_id(), worker=worker, now=now, until=until)
        if rooms is None:
            lanes = self.lanes_due()
            rooms = Rooms(limit, dict.fromkeys(lanes, limit), {key.merchant_id: limit for key in lanes})
        with self.deps.db.autocommit() as connection:
            return claims.claim_due(connection, lease, rooms)

    def lanes_due(self, *, since: datetime | None = None) -> list[LaneKey]:
        """Who has something due, as an engine sees it."""
        with self.deps.db.autocommit() as connection:
            now = self.deps.clock.now()
            if since is not None:
                return claims.lanes_due_since(connection, since, most=1000, now=now).due
            return claims.lanes_due_after(connection, claims.BEFORE_ALL, most=1000, now=now).due

    def resend(self, invoice_id: UUID) -> resending.Resent:
        return resending.resend_latest(
            self.deps, merchant_id=str(self.merchant_id), invoice_id=str(invoice_id)
        )

    def advance(self, *, seconds: float) -> None:
        """Time passes, and the engine looks at the clock."""
        self.clock.advance(seconds=seconds)
        self.deps.wake.set()

    def flush(self) -> None:
        """The tests' PostgreSQL commits without waiting for the disk, and what it had not written a kill undoes."""
        with self.deps.db.transaction() as tx:
            tx.execute(text("SET LOCAL synchronous_commit = on"))
            tx.execute(text("UPDATE events SET updated_at = updated_at"))

    # -- looking

    def event(self, invoice_id: UUID, *, merchant_id: UUID | None = None) -> EventView:
        return self._history(invoice_id, merchant_id).event

    def attempts(self, invoice_id: UUID, *, merchant_id: UUID | None = None) -> Sequence[AttemptView]:
        return self._history(invoice_id, merchant_id).attempts

    def claim_count(self) -> int:
        return desk.backlog(self.deps).in_flight

    def attempt_count(self) -> int:
        with self.deps.db.autocommit() as connection:
            count: int = connection.scalar(text("SELECT count(*) FROM attempts"))
            return count

    def wait(
        self, condition: Callable[[], bool], what: str, *, timeout_seconds: float = WAIT_SECONDS
    ) -> None:
        wait_until(condition, what, timeout_seconds=timeout_seconds)

    def wait_for_attempts(
        self, invoice_id: UUID, count: int, *, merchant_id: UUID | None = None
    ) -> Sequence[AttemptView]:
        self.wait(
            lambda: len(self.attempts(invoice_id, merchant_id=merchant_id)) >= count, f"{count} attempts"
        )
        return self.attempts(invoice_id, merchant_id=merchant_id)

    def wait_for_status(self, invoice_id: UUID, status: str) -> EventView:
        self.wait(lambda: self.event(invoice_id).status == status, f"status {status}")
        return self.event(invoice_id)

    def _history(self, invoice_id: UUID, merchant_id: UUID | None) -> EventHistory:
        [history] = reading.list_invoice_events(
            self.deps, merchant_id=str(merchant_id or self.merchant_id), invoice_id=str(invoice_id)
        )
        return history


def finished(**facts: Any) -> FinishedInvoice:
    """A successful invoice, with `facts` instead of the usual."""
    usual = {
        "event_id": new_id(),
        "event_type": "invoice.success",
        "invoice_id": new_id(),
        "merchant_id": new_id(),
        "key_id": new_id(),
        "external_id": "order-1 ü/%?",
        "status": "success",
        "sub_status": "successfully_paid",
        "finished_at": START,
        "expires_at": START,
        "amount": "100.50",
        "currency": "EUR",
        "rate_usd": "0.92",
        "callback_url": "https://shop.example.com/hook",
        "success_url": "https://shop.example.com/thanks",
        "fail_url": None,
        "is_adjusted": False,
        "original_amount": None,
        "adjusted_amount": None,
        "reason": None,
    }
    return FinishedInvoice(**{**usual, **facts})


@contextmanager
def running(some: Sequence[Worker]) -> Iterator[Stop]:
    """Workers in threads; each must end when stopped, and none by itself."""
    stop = Stop()
    failures: list[BaseException] = []

    def run(worker: Worker) -> None:
        try:
            worker.run(stop)
        except BaseException as error:  # noqa: BLE001  the test asserts that there is none
            failures.append(error)

    threads = [threading.Thread(target=run, args=(worker,), daemon=True) for worker in some]
    for thread in threads:
        thread.start()
    try:
        yield stop
    finally:
        stop.set()
        for thread in threads:
            thread.join(WAIT_SECONDS)
    assert not failures, failures
    assert not any(thread.is_alive() for thread in threads)


def empty(deps: Deps) -> None:
    connection = psycopg2.connect(past_all_rules(deps.settings.database_url))
    try:
        with connection, connection.cursor() as cursor:
            for table in ("attempts", "events", "inbox", "parked"):  # faster than TRUNCATE for a few rows
                cursor.execute(f"DELETE FROM {table}")
    finally:
        connection.close()


def signed_by(request: Received, secret: str) -> bool:
    """Whether this secret made the signature, as a receiver finds out."""
    signed = request.headers["x-signature-timestamp"].encode() + b"." + request.body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return hmac.compare_digest(request.headers["x-signature"], expected)
