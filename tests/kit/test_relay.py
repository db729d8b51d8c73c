"""kit.events.outbox and kit.events.relay: what is committed is announced, what is rolled back is not, and
nothing is lost.
"""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from google.protobuf.wrappers_pb2 import StringValue
from sqlalchemy import select, update
from sqlalchemy.orm import Session
from structlog.testing import capture_logs

import kit.events.relay
from deploy.local.waiting import wait_until
from kit.base import request_id
from kit.base.clock import SystemClock
from kit.db.alone import alone
from kit.db.database import Database
from kit.events.bus.connection import Bus
from kit.events.bus.messages import BusUnavailable, Incoming
from kit.events.bus.pull import Pull
from kit.events.outbox import MAX_PAYLOAD_BYTES, Announced, announce
from kit.events.relay import BATCH_ROWS, Relay, relay
from kit.work.worker import Stop, Worker
from tests.kit.tables import BusState, Outbox
from tests.support.clock import ManualClock
from tests.support.consumers import open_pull
from tests.support.servers import NatsServer
from tests.support.signing import SIGNER


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(SystemClock().now())  # the relay compares it with the clock of NATS


@pytest.fixture
def step(db: Database, bus: Bus, clock: ManualClock) -> Relay:
    return Relay(db, bus, Outbox, BusState, clock)


pytestmark = pytest.mark.usefixtures("patient")


def _announce_in(
    tx: Session, clock: ManualClock, subject: str, text: str = "", announced: Announced | None = None
) -> uuid.UUID:
    return announce(
        tx,
        Outbox,
        subject=subject,
        message=StringValue(value=text),
        at=clock.now(),
        announced=announced or Announced(),
        signer=SIGNER,
    )


def _announce(
    db: Database, clock: ManualClock, subject: str, text: str, announced: Announced | None = None
) -> uuid.UUID:
    with db.transaction() as tx:
        return _announce_in(tx, clock, subject, text, announced)


def _unpublished(db: Database) -> list[uuid.UUID]:
    with db.transaction() as tx:
        return list(tx.scalars(select(Outbox.id).where(Outbox.published_at.is_(None)).order_by(Outbox.id)))


def _stored(bus: Bus, subject: str) -> int:
    async def count() -> int:
        info = await bus._client.jsm().stream_info("FIATGATE", subjects_filter=subject)
        return (info.state.subjects or {}).get(subject, 0)

    return bus._loop.call(count, timeout_seconds=5)


@contextmanager
def _running(worker: Worker) -> Iterator[None]:
    stop = Stop()
    thread = threading.Thread(target=worker.run, args=(stop,), daemon=True)
    thread.start()
    yield
    stop.set()
    thread.join(10)
    assert not thread.is_alive()


def test_a_commit_wakes_the_relay_at_once(
    db: Database, bus: Bus, clock: ManualClock, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kit.events.relay.POLL_SECONDS", 3600)  # the poll finds nothing while the test lasts
    announced = Announced()
    worker = relay(db=db, bus=bus, outbox=Outbox, bus_state=BusState, clock=clock, announced=announced)
    pull = open_pull(bus, f"woken-{uuid.uuid4().hex}", subject)
    with _running(worker):
        wait_until(lambda: worker.health().last_run_at is not None, "a first step", timeout_seconds=5)
        event_ids = [_announce(db, clock, subject, "now", announced)]
        assert [event.event_id for event in pull.take(1)] == event_ids
        wait_until(lambda: not _unpublished(db), "the mark", timeout_seconds=5)
    bus.close_pull(pull)


def test_an_event_carries_the_request_it_came_from(
    db: Database, bus: Bus, clock: ManualClock, subject: str, step: Relay
) -> None:
    with request_id.bind("req-42"):
        _announce(db, clock, subject, "hello")
    step.step()
    pull = open_pull(bus, f"request-{uuid.uuid4().hex}", subject)
    (event,) = pull.take(1)
    bus.close_pull(pull)
    assert event.request_id == "req-42"
    assert StringValue.FromString(event.payload).value == "hello"


def test_what_is_rolled_back_is_never_announced(
    db: Database, bus: Bus, clock: ManualClock, subject: str, step: Relay
) -> None:
    announced = Announced()
    with pytest.raises(ZeroDivisionError), db.transaction() as tx:
        _announce_in(tx, clock, subject, announced=announced)
        raise ZeroDivisionError
    assert not announced.wake.wait(0)
    assert not step.step()
    assert _stored(bus, subject) == 0


def test_a_fact_too_large_for_nats_is_refused_before_it_is_written(
    db: Database, clock: ManualClock, subject: str
) -> None:
    with pytest.raises(ValueError, match="bytes"):
        _announce(db, clock, subject, "x" * (MAX_PAYLOAD_BYTES + 1))


def test_more_than_one_batch_is_announced_in_full(
    db: Database, bus: Bus, clock: ManualClock, subject: str, step: Relay
) -> None:
    with db.transaction() as tx:
        for _ in range(300):
            _announce_in(tx, clock, subject)
    assert step.step()
    assert not step.step()
    assert _unpublished(db) == []
    assert _stored(bus, subject) == 300


def test_a_crash_between_publishing_and_marking_publishes_again_under_the_same_events_id(
    db: Database, bus: Bus, clock: ManualClock, subject: str, step: Relay
) -> None:
    event_id = _announce(db, clock, subject, "once")
    (fact,) = step._waiting()
    bus.publish([fact])  # and here the process dies
    assert _unpublished(db) == [event_id]
    step.step()
    assert _unpublished(db) == []
    pull = open_pull(bus, f"again-{uuid.uuid4().hex}", subject)
    events = _taken(pull, 2)
    bus.close_pull(pull)
    assert {(event.event_id, event.payload, event.signature) for event in events} == {
        (event_id, fact.payload, fact.signature)
    }


def test_several_relays_announce_each_fact_once(
    db: Database, bus: Bus, clock: ManualClock, subject: str
) -> None:
    with db.transaction() as tx:
        for _ in range(100):
            _announce_in(tx, clock, subject)
    relays = [Relay(db, bus, Outbox, BusState, clock) for _ in range(3)]
    threads = [threading.Thread(target=each.step) for each in relays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert _unpublished(db) == []
    assert _stored(bus, subject) == 100


def test_a_relay_publishes_what_its_process_commits_while_another_one_looks_through_the_table(
    db: Database, bus: Bus, clock: ManualClock, subject: str
) -> None:
    announced = Announced()
    worker = relay(db=db, bus=bus, outbox=Outbox, bus_state=BusState, clock=clock, announced=announced)
    with alone(db, "relay", at_most_seconds=30) as entered, _running(worker):
        assert entered
        left = _announce(db, clock, subject, "of a process that died")
        own = _announce(db, clock, subject, "own", announced)
        wait_until(lambda: own not in _unpublished(db), "the own one's mark", timeout_seconds=5)
        assert not Relay(db, bus, Outbox, BusState, clock).step()
        assert _unpublished(db) == [left]
        assert _stored(bus, subject) == 1
    Relay(db, bus, Outbox, BusState, clock).step()
    assert _unpublished(db) == []


def test_more_than_one_batch_of_fresh_facts_is_announced_at_once(
    db: Database, bus: Bus, clock: ManualClock, subject: str
) -> None:
    announced = Announced()
    with db.transaction() as tx:
        for _ in range(BATCH_ROWS + 1):
            _announce_in(tx, clock, subject, announced=announced)
    step = Relay(db, bus, Outbox, BusState, clock, announced)
    with alone(db, "relay", at_most_seconds=30):
        assert step.turn(), "there is more"
        assert not step.turn()
    assert _unpublished(db) == []
    assert _stored(bus, subject) == BATCH_ROWS + 1


def test_the_search_of_the_table_leaves_out_the_facts_that_wait_in_memory(
    db: Database, bus: Bus, clock: ManualClock, subject: str
) -> None:
    announced = Announced()
    missed = _announce(db, clock, subject, "missed")
    fresh = _announce(db, clock, subject, "fresh", announced)
    step = Relay(db, bus, Outbox, BusState, clock, announced)
    assert not step.step()
    assert _unpublished(db) == [fresh]
    step.turn()
    assert _unpublished(db) == []
    assert _stored(bus, subject) == 2, f"{missed} and {fresh}, once each"


def test_work_that_can_wait_goes_on_once_the_relay_has_made_room(
    db: Database, bus: Bus, clock: ManualClock, subject: str
) -> None:
    announced = Announced()
    with db.transaction() as tx:
        for _ in range(3):
            _announce_in(tx, clock, subject, announced=announced)
    announced.wait_for_room(3, timeout_seconds=3600)
    waiting = threading.Thread(target=announced.wait_for_room, args=(0,), kwargs={"timeout_seconds": 3600})
    waiting.start()
    Relay(db, bus, Outbox, BusState, clock, announced).turn()
    waiting.join(20)
    assert not waiting.is_alive()


def test_a_fact_that_another_relay_has_marked_keeps_its_mark(
    db: Database, bus: Bus, clock: ManualClock, subject: str, step: Relay
) -> None:
    announced = Announced()
    event_id = _announce(db, clock, subject, "once", announced)
    step.step()
    marked_at = clock.now()
    clock.advance(seconds=5)
    Relay(db, bus, Outbox, BusState, clock, announced).turn()
    with db.transaction() as tx:
        assert tx.scalar(select(Outbox.published_at).where(Outbox.id == event_id)) == marked_at


def test_facts_wait_in_postgresql_while_nats_is_away(
    db: Database, bus: Bus, clock: ManualClock, subject: str, nats_server: NatsServer
) -> None:
    worker = relay(db=db, bus=bus, outbox=Outbox, bus_state=BusState, clock=clock, announced=Announced())
    nats_server.stop()
    try:
        event_id = _announce(db, clock, subject, "patient")
        wait_until(lambda: not bus.connected, "the connection to be lost", timeout_seconds=10)
        with pytest.raises(BusUnavailable):
            Relay(db, bus, Outbox, BusState, clock).step()
        assert _unpublished(db) == [event_id]
    finally:
        nats_server.start()
    with _running(worker):
        wait_until(lambda: not _unpublished(db), "the announcement", timeout_seconds=20)
    assert _stored(bus, subject) == 1


def test_a_stream_that_was_made_anew_gets_every_fact_again(
    db: Database, bus: Bus, clock: ManualClock, subject: str, step: Relay
) -> None:
    _announce(db, clock, subject, "old")
    step.step()
    assert _stored(bus, subject) == 1

    async def lose_everything() -> None:
        await bus._client.jsm().delete_stream("FIATGATE")
        await bus._check_stream()

    bus._loop.call(lose_everything, timeout_seconds=10)
    assert _stored(bus, subject) == 0
    Relay(
        db, bus, Outbox, BusState, clock
    ).step()  # one that starts later notices too: the state is in the database
    assert _stored(bus, subject) == 1
    assert _unpublished(db) == []
    assert not step.step()  # and what was announced again isn't announced a third time
    assert _stored(bus, subject) == 1


def test_a_stream_whose_messages_were_removed_gets_every_fact_again_once(
    db: Database, bus: Bus, clock: ManualClock, subject: str, step: Relay
) -> None:
    clock.advance(seconds=-60)  # of the day before, but for the clocks that may differ
    _announce(db, clock, subject, "removed by mistake")
    step.step()
    clock.advance(seconds=60)

    async def remove_everything() -> None:
        await bus._client.jsm().purge_stream("FIATGATE")
        await bus._check_stream()

    async def check() -> None:
        await bus._check_stream()

    bus._loop.call(remove_everything, timeout_seconds=10)
    assert _stored(bus, subject) == 0
    with capture_logs() as lines:
        step.step()
        Relay(db, bus, Outbox, BusState, clock).step()  # one that starts later finds nothing missing
        bus._loop.call(check, timeout_seconds=10)
        step.step()
    assert _stored(bus, subject) == 1
    assert _unpublished(db) == []
    assert [line["event"] for line in lines if line["log_level"] == "error"] == ["stream_facts_removed"]


def test_the_newest_facts_are_announced_first_when_all_are_announced_again(
    db: Database, bus: Bus, clock: ManualClock, subject: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit.events.relay, "BATCH_ROWS", 2)
    monkeypatch.setattr(kit.events.relay, "SWEEP_ROWS", 2)
    step = Relay(db, bus, Outbox, BusState, clock)
    facts = []
    for number in range(5):
        facts.append(_announce(db, clock, subject, str(number)))
        step.step()
        clock.advance(seconds=1)

    async def lose_everything() -> None:
        await bus._client.jsm().delete_stream("FIATGATE")
        await bus._check_stream()

    bus._loop.call(lose_everything, timeout_seconds=10)
    pull = open_pull(bus, f"again-{uuid.uuid4().hex}", subject)
    assert step.step(), "there is more"
    assert sorted(event.event_id for event in _taken(pull, 2)) == facts[3:]
    present = _announce(db, clock, subject, "now")
    assert step.step()
    assert present in {event.event_id for event in _taken(pull, 2)}, "the present does not wait for the past"
    while step.step():
        pass
    assert _unpublished(db) == []
    assert _stored(bus, subject) == 6
    bus.close_pull(pull)


def _taken(pull: Pull, count: int) -> list[Incoming]:
    taken: list[Incoming] = []

    def all_came() -> bool:
        taken.extend(pull.take(count))
        return len(taken) >= count

    wait_until(all_came, f"{count} deliveries", timeout_seconds=10)
    return taken


def test_published_facts_are_deleted_after_a_week_and_waiting_ones_never(
    db: Database, clock: ManualClock, subject: str, step: Relay
) -> None:
    old = _announce(db, clock, subject, "old")
    step.step()
    clock.advance(days=6)
    young = _announce(db, clock, subject, "young")
    step.step()
    with db.transaction() as tx:
        assert set(tx.scalars(select(Outbox.id))) == {old, young}
    clock.advance(days=1, seconds=1)
    step.step()
    with db.transaction() as tx:
        assert set(tx.scalars(select(Outbox.id))) == {young}
        tx.execute(update(Outbox).values(published_at=None, created_at=clock.now() - timedelta(days=90)))
    clock.advance(days=30)
    step.step()
    with db.transaction() as tx:
        assert set(tx.scalars(select(Outbox.id))) == {young}
