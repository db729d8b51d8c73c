"""The outbox, the relay and a consumer on NATS of three servers, of which the stream's leader is killed."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from google.protobuf.wrappers_pb2 import StringValue
from sqlalchemy import select
from sqlalchemy.orm import Session

from deploy.local.waiting import wait_until
from kit.base.clock import SystemClock
from kit.base.ids import new_id
from kit.db.database import Database
from kit.events.bus.connection import Bus
from kit.events.bus.messages import Incoming
from kit.events.consumer import Consumer
from kit.events.outbox import Announced, announce
from kit.events.relay import relay
from kit.work.worker import Stop
from services.invoices.config import InvoicesSettings
from services.invoices.events import FINISHED
from services.invoices.wiring import wire
from services.webhooks.workers import CONSUMER
from tests.kit.consuming import notes, running
from tests.kit.tables import BusState, Inbox, Note, Outbox, Parked
from tests.support.nats_cluster import SERVERS, NatsCluster
from tests.support.signing import SEAL_KEY, SIGNER, SIGNING_KEY, verifier

SECONDS = 30
BETWEEN_SECONDS = 0.02
"""Some fifty facts a second."""
MORE = 50


def _note(tx: Session, event: Incoming) -> None:
    tx.add(Note(id=new_id(), text=StringValue.FromString(event.payload).value))


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[NatsCluster]:
    with NatsCluster(tmp_path / "cluster") as made:
        yield made


@pytest.fixture
def invoices(cluster: NatsCluster, url: str) -> Iterator[Bus]:
    settings = InvoicesSettings(
        seal_keys=(SEAL_KEY,),
        database_url=url,
        bind="127.0.0.1:0",
        identity_address="127.0.0.1:1",
        catalog_address="127.0.0.1:1",
        nats_url=cluster.url_of("invoices"),
        nats_replicas=int(cluster.settings["FIATGATE_NATS_REPLICAS"]),
        fact_signing_key=SIGNING_KEY,
    )
    bus = wire(settings).bus
    with closing(bus):
        bus.start()
        assert bus.wait_ready(SECONDS)
        yield bus


@pytest.fixture
def webhooks(cluster: NatsCluster) -> Iterator[Bus]:
    with closing(Bus(cluster.url_of("webhooks"), name="webhooks")) as bus:
        bus.start()
        assert bus.wait_ready(SECONDS)
        yield bus


@contextmanager
def _writing(db: Database, bus: Bus) -> Iterator[list[str]]:
    """Commits facts as an operation does, NATS there or not, and runs the relay; yields the texts committed so far."""
    announced, stop, written = Announced(), Stop(), list[str]()
    publisher = relay(
        db=db, bus=bus, outbox=Outbox, bus_state=BusState, clock=SystemClock(), announced=announced
    )

    def write() -> None:
        while not stop.wait(BETWEEN_SECONDS):
            text = f"{len(written):06}"
            with db.transaction() as tx:
                announce(
                    tx,
                    Outbox,
                    subject=FINISHED,
                    message=StringValue(value=text),
                    at=SystemClock().now(),
                    announced=announced,
                    signer=SIGNER,
                )
            written.append(text)

    until_published = Stop()
    writer = threading.Thread(target=write)
    publishing = threading.Thread(target=publisher.run, args=(until_published,))
    writer.start()
    publishing.start()
    try:
        yield written
    finally:
        stop.set()
        writer.join(SECONDS)
        with suppress(TimeoutError):  # the assertion that follows names what is missing
            wait_until(lambda: not _unpublished(db), "every fact to be published", timeout_seconds=SECONDS)
        until_published.set()
        publishing.join(SECONDS)


def _unpublished(db: Database) -> int:
    with db.transaction() as tx:
        return len(tx.scalars(select(Outbox.id).where(Outbox.published_at.is_(None))).all())


def test_facts_go_on_and_none_is_lost_when_the_streams_leader_is_killed(
    cluster: NatsCluster, invoices: Bus, webhooks: Bus, make_db: Callable[..., Database], db: Database
) -> None:
    assert cluster.stream()["config"]["num_replicas"] == SERVERS
    consumer = Consumer(
        CONSUMER,
        _note,
        db=make_db(),
        bus=webhooks,
        inbox=Inbox,
        parked=Parked,
        verifier=verifier(),
        clock=SystemClock(),
    )

    def wait_for_more(when: str) -> None:
        before = len(notes(db))
        wait_until(lambda: len(notes(db)) >= before + MORE, f"facts {when}", timeout_seconds=SECONDS)

    with running(consumer):
        with _writing(db, invoices) as written:
            wait_for_more("on all servers")
            killed = cluster.servers[cluster.leader()]
            killed.kill()
            assert cluster.leader() != killed.name
            wait_for_more("without the server that led")
            killed.start()
            cluster.wait_for_copies()
            wait_for_more("with that server again")
        wait_until(lambda: notes(db) == written, "every fact, once", timeout_seconds=SECONDS)
