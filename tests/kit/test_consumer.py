"""kit.events.inbox and kit.events.consumer: each event takes effect once, or is parked where somebody sees it."""

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from deploy.local.waiting import wait_until
from kit.base import request_id
from kit.base.ids import new_id
from kit.db.database import Database, DatabaseUnavailable
from kit.events.bus.connection import Bus
from kit.events.bus.messages import Incoming, Outgoing
from kit.events.consumer import Consumer, Handler, ManyHandler
from kit.events.inbox import take_in
from kit.events.parked import Retried
from kit.work.worker import Stop
from tests.kit.tables import Inbox, Note, Parked
from tests.support.clock import START, ManualClock
from tests.support.consumers import make_consumer
from tests.support.servers import NatsServer, PostgresServer
from tests.support.signing import delivered, signed, verifier

Start = Callable[..., Consumer]


@pytest.fixture
def start(db: Database, bus: Bus, subject: str) -> Iterator[Start]:
    """`start(handler)`: a running consumer of the test's subject."""
    stop = Stop()
    threads = []

    def begin(
        handler: Handler,
        *,
        many: ManyHandler | None = None,
        has_no_effect: Callable[[Incoming], bool] = lambda _event: False,
        park_after_failures: int = 20,
    ) -> Consumer:
        durable = f"durable-{subject.rpartition('.')[2]}"
        make_consumer(bus, durable, subject)
        consumer = Consumer(
            durable,
            handler,
            db=db,
            bus=bus,
            inbox=Inbox,
            parked=Parked,
            verifier=verifier(),
            clock=ManualClock(),
            many=many,
            has_no_effect=has_no_effect,
            park_after_failures=park_after_failures,
            first_retry_seconds=0.01,
        )
        threads.append(threading.Thread(target=consumer.run, args=(stop,), daemon=True))
        threads[-1].start()
        return consumer

    yield begin
    stop.set()
    for thread in threads:
        thread.join(15)
        assert not thread.is_alive()


def _note(tx: Session, event: Incoming) -> None:
    tx.add(Note(id=new_id(), text=event.payload.decode()))


def _notes(db: Database) -> list[str]:
    with db.transaction() as tx:
        return list(tx.scalars(select(Note.text).order_by(Note.text)))


def _parked(db: Database) -> list[Parked]:
    with db.transaction() as tx:
        return list(tx.scalars(select(Parked).order_by(Parked.event_id)))


def _publish(bus: Bus, subject: str, *texts: str) -> list[Outgoing]:
    facts = [signed(Outgoing(new_id(), subject, text.encode(), request_id="req-7")) for text in texts]
    wait_until(lambda: len(bus.publish(facts)) == len(facts), "the publication", timeout_seconds=15)
    return facts


def _wait_for_notes(db: Database, *texts: str, timeout_seconds: float = 20) -> None:
    wait_until(lambda: _notes(db) == sorted(texts), f"the notes {texts}", timeout_seconds=timeout_seconds)


def _incoming(*event_ids: uuid.UUID) -> list[Incoming]:
    return [
        Incoming(event_id, "s", event_id.bytes, "", lambda: None, lambda _seconds: None)
        for event_id in event_ids
    ]


def test_the_inbox_knows_an_event_once(db: Database) -> None:
    first, second = new_id(), new_id()
    with db.transaction() as tx:
        assert take_in(tx, Inbox, Parked, _incoming(first, first), START) == {first}
        assert take_in(tx, Inbox, Parked, _incoming(first), START) == set()
    with db.transaction() as tx:
        assert take_in(tx, Inbox, Parked, _incoming(first, second), START) == {second}


def test_an_event_whose_effect_was_rolled_back_is_still_new(db: Database) -> None:
    event_id = new_id()
    with pytest.raises(ZeroDivisionError), db.transaction() as tx:
        take_in(tx, Inbox, Parked, _incoming(event_id), START)
        raise ZeroDivisionError
    with db.transaction() as tx:
        assert take_in(tx, Inbox, Parked, _incoming(event_id), START) == {event_id}


def test_each_event_takes_effect_under_its_own_request_id(
    db: Database, bus: Bus, subject: str, start: Start
) -> None:
    seen: list[str] = []

    def handle(tx: Session, event: Incoming) -> None:
        seen.append(request_id.current())
        _note(tx, event)

    consumer = start(handle)
    _publish(bus, subject, "a", "b", "c")
    _wait_for_notes(db, "a", "b", "c")
    assert seen == ["req-7"] * 3
    assert consumer.health().healthy


def test_a_second_copy_of_an_event_has_no_effect(db: Database, bus: Bus, subject: str, start: Start) -> None:
    handled: list[uuid.UUID] = []

    def handle(tx: Session, event: Incoming) -> None:
        handled.append(event.event_id)
        _note(tx, event)

    consumer = start(handle)
    (fact,) = _publish(bus, subject, "once")
    _wait_for_notes(db, "once")
    acknowledged = threading.Event()
    twice = signed(replace(fact, payload=b"twice"))
    consumer.handle(
        delivered(twice, acknowledge=acknowledged.set, retry_after=lambda _seconds: pytest.fail("put off"))
    )
    assert acknowledged.is_set()
    assert handled == [fact.event_id]
    assert _notes(db) == ["once"]


def test_two_consumers_of_one_name_share_the_events(
    db: Database, bus: Bus, subject: str, start: Start
) -> None:
    start(_note)
    start(_note)
    texts = [f"{number:03}" for number in range(60)]
    _publish(bus, subject, *texts)
    _wait_for_notes(db, *texts)
    assert _parked(db) == []


def test_an_event_that_fails_is_tried_again_and_its_failures_are_forgotten_when_it_succeeds(
    db: Database, bus: Bus, subject: str, start: Start
) -> None:
    failures = ["first", "second"]

    def handle(tx: Session, event: Incoming) -> None:
        _note(tx, event)
        tx.flush()
        if failures:
            raise ValueError(failures.pop())

    start(handle)
    _publish(bus, subject, "at last")
    _wait_for_notes(db, "at last")
    assert _parked(db) == []


def test_an_event_that_keeps_failing_is_parked_and_the_ones_behind_it_go_on(
    db: Database, bus: Bus, subject: str, start: Start
) -> None:
    broken = threading.Event()
    broken.set()

    def handle(tx: Session, event: Incoming) -> None:
        if event.payload == b"poison" and broken.is_set():
            raise ValueError("can't swallow it\x00")
        _note(tx, event)

    _, poison, _ = _publish(bus, subject, "fine", "poison", "good")  # they come in one batch
    consumer = start(handle, park_after_failures=3)
    _wait_for_notes(db, "fine", "good")
    wait_until(
        lambda: any(row.parked_at is not None for row in _parked(db)),
        "the event to be parked",
        timeout_seconds=20,
    )
    (row,) = _parked(db)
    assert (row.event_id, row.attempts, row.payload) == (poison.event_id, 3, b"poison")
    assert row.error == "ValueError: can't swallow it"
    assert consumer.retry_parked() == Retried(1, 0, poison.event_id, more=False)
    broken.clear()
    assert consumer.retry_parked(only=new_id()) == Retried(0, 0, None, more=False)
    assert consumer.retry_parked(after=poison.event_id) == Retried(0, 0, None, more=False)
    assert consumer.retry_parked() == Retried(1, 1, poison.event_id, more=False)
    assert consumer.retry_parked() == Retried(0, 0, None, more=False)
    assert _notes(db) == ["fine", "good", "poison"]
    assert _parked(db) == []


def test_a_parked_event_that_is_announced_again_in_the_same_words_is_parked_no_more(
    db: Database, bus: Bus, subject: str, start: Start
) -> None:
    broken = threading.Event()
    broken.set()

    def handle(tx: Session, event: Incoming) -> None:
        if broken.is_set():
            raise ValueError("a bug")
        _note(tx, event)

    start(handle, park_after_failures=1)
    _publish(bus, subject, "mended")
    wait_until(lambda: len(_parked(db)) == 1, "the event to be parked", timeout_seconds=20)
    broken.clear()
    _publish(bus, subject, "mended")
    _wait_for_notes(db, "mended")
    assert _parked(db) == []


def test_the_database_being_away_counts_as_nobodys_failure(
    db: Database, bus: Bus, subject: str, start: Start, postgres: PostgresServer
) -> None:
    start(_note, park_after_failures=1)
    _publish(bus, subject, "before")
    _wait_for_notes(db, "before")
    postgres.stop()
    try:
        _publish(bus, subject, "meanwhile")
    finally:
        postgres.start()
    _wait_for_notes(db, "before", "meanwhile")
    assert _parked(db) == []


def test_an_outage_in_the_middle_of_the_effect_counts_as_nobodys_failure(
    db: Database, bus: Bus, subject: str, start: Start
) -> None:
    outages = [DatabaseUnavailable("gone for a moment")]

    def handle(tx: Session, event: Incoming) -> None:
        if outages:
            raise outages.pop()
        _note(tx, event)

    start(handle, park_after_failures=1)
    _publish(bus, subject, "one", "two")
    _wait_for_notes(db, "one", "two")
    assert _parked(db) == []


def test_a_consumer_goes_on_after_nats_was_killed(
    db: Database, bus: Bus, subject: str, start: Start, nats_server: NatsServer
) -> None:
    start(_note)
    _publish(bus, subject, "before")
    _wait_for_notes(db, "before")
    nats_server.kill()
    nats_server.start()
    assert bus.wait_ready(15)
    _publish(bus, subject, "after")
    _wait_for_notes(db, "before", "after")


def test_a_consumer_goes_on_after_its_durable_or_the_stream_was_deleted(
    db: Database, bus: Bus, subject: str, start: Start
) -> None:
    consumer = start(_note)
    _publish(bus, subject, "one")
    _wait_for_notes(db, "one")

    async def delete_consumer() -> None:
        await bus._client.jsm().delete_consumer("FIATGATE", consumer.name)
        await bus._check_stream()  # at most five seconds later

    async def delete_stream() -> None:
        await bus._client.jsm().delete_stream("FIATGATE")

    bus._loop.call(delete_consumer, timeout_seconds=5)
    _publish(bus, subject, "two")
    _wait_for_notes(db, "one", "two")
    bus._loop.call(delete_stream, timeout_seconds=5)
    _publish(bus, subject, "three")
    _wait_for_notes(db, "one", "three", "two")


def test_copies_of_many_events_are_dropped_and_the_new_one_among_them_is_not(
    db: Database, bus: Bus, subject: str, start: Start
) -> None:
    handled: list[str] = []

    def handle(tx: Session, event: Incoming) -> None:
        handled.append(event.payload.decode())
        _note(tx, event)

    consumer = start(handle)
    old = _publish(bus, subject, "a", "b", "c")
    _wait_for_notes(db, "a", "b", "c")
    twice = signed(Outgoing(new_id(), subject, b"d"))
    events = [verifier().proven(delivered(fact)) for fact in (*old, twice, twice)]
    assert consumer._handle_together(events)
    assert sorted(handled) == ["a", "b", "c", "d"]
    assert _notes(db) == ["a", "b", "c", "d"]


def test_many_events_with_a_forged_and_a_poisoned_one_among_them_take_effect_but_for_these_two(
    db: Database, bus: Bus, subject: str, start: Start
) -> None:
    together: list[int] = []

    def handle_many(tx: Session, events: Sequence[Incoming]) -> None:
        together.append(len(events))
        for event in events:
            handle(tx, event)

    def handle(tx: Session, event: Incoming) -> None:
        if event.payload == b"poison":
            raise ValueError("can't swallow it")
        _note(tx, event)

    texts = [f"{number:02}" for number in range(20)]
    facts = [signed(Outgoing(new_id(), subject, each.encode())) for each in [*texts, "poison"]]
    forged = Outgoing(new_id(), subject, b"forged")
    batch = [*facts[:10], forged, *facts[10:]]
    wait_until(lambda: len(bus.publish(batch)) == len(batch), "the publication", timeout_seconds=15)
    start(handle, many=handle_many, park_after_failures=2)
    _wait_for_notes(db, *texts)
    assert max(together) > 1
    wait_until(
        lambda: {row.payload for row in _parked(db) if row.parked_at} == {b"forged", b"poison"},
        "both to be parked",
        timeout_seconds=20,
    )


def test_an_event_without_effect_is_acknowledged_and_its_parked_copy_goes(
    db: Database, bus: Bus, subject: str, start: Start
) -> None:
    start(_note, has_no_effect=lambda event: event.payload.startswith(b"idle"))
    unsigned = Outgoing(new_id(), subject, b"idle 1")
    wait_until(lambda: bus.publish([unsigned]) == [unsigned.event_id], "the copy", timeout_seconds=15)
    wait_until(lambda: len(_parked(db)) == 1, "the copy to be parked", timeout_seconds=20)
    facts = _publish(bus, subject, "idle 1", "idle 2", "effect")
    _wait_for_notes(db, "effect")
    wait_until(lambda: not _parked(db), "the copy to go", timeout_seconds=20)
    with db.transaction() as tx:
        assert list(tx.scalars(select(Inbox.event_id))) == [facts[2].event_id]


def test_events_that_were_committed_and_not_acknowledged_take_effect_once(
    db: Database, bus: Bus, subject: str, start: Start
) -> None:
    def handle_many(tx: Session, events: Sequence[Incoming]) -> None:
        for event in events:
            _note(tx, event)

    facts = _publish(bus, subject, "a", "b", "c", "d")
    crashed = Consumer(
        "crashed",
        _note,
        db=db,
        bus=bus,
        inbox=Inbox,
        parked=Parked,
        verifier=verifier(),
        clock=ManualClock(),
        many=handle_many,
    )
    crashed._take_effect([verifier().proven(delivered(fact)) for fact in facts[:3]])  # and here it dies
    _wait_for_notes(db, "a", "b", "c")
    start(_note, many=handle_many)
    _wait_for_notes(db, "a", "b", "c", "d")
    _publish(bus, subject, "last")
    _wait_for_notes(db, "a", "b", "c", "d", "last")


def test_a_consumer_that_hears_nothing_from_nats_is_ill_until_it_does(
    db: Database, bus: Bus, subject: str, start: Start, nats_server: NatsServer
) -> None:
    consumer = start(_note)
    _publish(bus, subject, "before")
    _wait_for_notes(db, "before")
    with nats_server.paused():
        wait_until(lambda: not consumer.health().healthy, "the illness", timeout_seconds=20)
        assert "fell silent" in consumer.health().detail or "nothing done" in consumer.health().detail
    wait_until(lambda: consumer.health().healthy, "the recovery", timeout_seconds=30)
    _publish(bus, subject, "after")
    _wait_for_notes(db, "after", "before")


def test_a_consumer_whose_handler_hangs_is_ill(db: Database, bus: Bus, subject: str, start: Start) -> None:
    hanging, freed = threading.Event(), threading.Event()

    def handle(tx: Session, event: Incoming) -> None:
        hanging.set()
        freed.wait(60)

    consumer = start(handle)
    _publish(bus, subject, "stuck")
    assert hanging.wait(20)
    assert consumer.health().healthy
    wait_until(lambda: not consumer.health().healthy, "the illness", timeout_seconds=20)
    freed.set()
    wait_until(lambda: consumer.health().healthy, "the recovery", timeout_seconds=20)
