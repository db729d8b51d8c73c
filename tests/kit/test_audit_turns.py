"""The readers of acts take turns: those of one merchant leave places to the desk."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import copy_context
from dataclasses import replace
from typing import Final

import psycopg2
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from deploy.local.waiting import wait_until
from fiatgate.audit.v1 import audit_pb2 as pb
from fiatgate.audit.v1.audit_pb2_grpc import AuditServiceStub
from kit.base.actors import Actor
from kit.base.clock import SystemClock
from kit.base.ids import new_id
from kit.db.database import Database
from kit.rpc import audit
from kit.rpc.actor_tokens import write_token
from kit.rpc.actors import carry_token
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from kit.rpc.permissions import Checks
from kit.rpc.server import Options, RpcServer
from kit.rpc.slots import Use
from tests.support.databases import owner_url
from tests.support.signing import SEALS

PATIENCE_SECONDS: Final = 60
CALLS: Final = 40
KEY: Final = Ed25519PrivateKey.generate()
MERCHANT: Final = new_id()


class Keys:
    def find(self, key_id: str) -> Ed25519PublicKey:
        return KEY.public_key()


class Service:
    """The acts of catalog behind a real socket. Turns last as long as a busy machine may need."""

    def __init__(self, db: Database) -> None:
        assert audit.SLOTS.share is not None
        slots = replace(audit.SLOTS, share=replace(audit.SLOTS.share, wait_seconds=PATIENCE_SECONDS))
        checks = Checks(keys=Keys())
        self._server = RpcServer(Options(slots=[slots], checks=checks, call_seconds=PATIENCE_SECONDS))
        audit.add_to(self._server, db, "catalog")
        self._address = f"127.0.0.1:{self._server.listen('127.0.0.1:0')}"
        self._server.start()

    def use(self) -> Use:
        return self._server.slots_use()["audit"]

    def read_by(self, surface: str, role: str) -> str:
        """The reason of the refusal; empty when the acts were listed."""

        def read() -> str:
            member = surface == "dashboard"
            person = Actor(
                kind="person",
                name=f"{role}@example.com",
                surface=surface,
                person_id=new_id(),
                session_id=new_id(),
                roles=frozenset({role}),
                merchant_id=MERCHANT if member else None,
            )
            carry_token(write_token(person, key_id="one", private_key=KEY, now=SystemClock().now()))
            request = pb.ListActsRequest(merchant_id=str(MERCHANT) if member else "")
            with channel(self._address, name="catalog") as opened:
                try:
                    AuditServiceStub(opened).ListActs(request, timeout=PATIENCE_SECONDS)
                except Refused as refused:
                    return refused.reason
            return ""

        return copy_context().run(read)

    def stop(self) -> None:
        self._server.stop(0).wait(5)


@pytest.fixture
def db(database_url: Callable[[str], str]) -> Iterator[Database]:
    opened = Database(
        database_url("catalog"),
        name="patient",
        seals=SEALS,
        pool_size=4,
        statement_timeout_seconds=PATIENCE_SECONDS,
        lock_timeout_seconds=PATIENCE_SECONDS,
    )
    yield opened
    opened.dispose()


@pytest.fixture
def service(db: Database) -> Iterator[Service]:
    made = Service(db)
    yield made
    made.stop()


@contextmanager
def acts_locked(url: str) -> Iterator[Callable[[], None]]:
    """Reads of acts hang until the block calls what it gets."""
    with closing(psycopg2.connect(owner_url(url))) as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLE acts IN ACCESS EXCLUSIVE MODE")
        yield connection.rollback


def done(calls: list[Future[str]]) -> list[str]:
    return [each.result() for each in calls if each.done()]


def test_an_owner_who_reads_on_many_connections_leaves_turns_to_the_desk(
    service: Service, database_url: Callable[[str], str]
) -> None:
    with acts_locked(database_url("catalog")) as let_go, ThreadPoolExecutor(CALLS + 1) as threads:
        of_owner = [threads.submit(service.read_by, "dashboard", "owner") for _ in range(CALLS)]
        wait_until(lambda: service.use().waiting >= 3, "reads to wait", timeout_seconds=PATIENCE_SECONDS)
        wait_until(
            lambda: len(done(of_owner)) == CALLS - 4,
            "the rest to be refused",
            timeout_seconds=PATIENCE_SECONDS,
        )
        assert set(done(of_owner)) == {"RATE_LIMITED"}
        of_desk = threads.submit(service.read_by, "desk", "auditor")
        wait_until(
            lambda: of_desk.done() or service.use().waiting == 4,
            "the desk to have its place",
            timeout_seconds=PATIENCE_SECONDS,
        )
        let_go()
        assert of_desk.result(PATIENCE_SECONDS) == ""
        assert [each.result(PATIENCE_SECONDS) for each in of_owner].count("") == 4
