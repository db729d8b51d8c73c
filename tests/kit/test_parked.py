"""kit.rpc.parked: a poisoned event parks, an operator sees it, and has it handled again once the cause is mended."""

import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from sqlalchemy import select, update
from sqlalchemy.orm import Session

import kit.events.consumer
from deploy.local.waiting import wait_until
from fiatgate.parked.v1 import parked_pb2 as pb
from fiatgate.parked.v1.parked_pb2_grpc import ParkedServiceStub
from kit.base.ids import new_id
from kit.db.database import Database
from kit.events.bus.connection import Bus
from kit.events.bus.messages import Incoming, Outgoing
from kit.events.consumer import Consumer
from kit.rpc import parked
from kit.rpc.errors import Refused
from kit.work.worker import Stop
from tests.kit.tables import Inbox, Note, Parked
from tests.support.clock import START, ManualClock
from tests.support.consumers import make_consumer
from tests.support.serving import connected, serving
from tests.support.signing import signed, verifier

UNKNOWN = "01000000-0000-7000-8000-000000000000"


@dataclass
class World:
    """A consumer that notes what comes, unless it is `broken`; and its operators' service."""

    db: Database
    bus: Bus
    consumer: Consumer
    subject: str
    stub: ParkedServiceStub
    broken: set[bytes]

    def park(self, *texts: str) -> list[str]:
        """Publish events that can't be handled, wait until they are parked; their ids in order."""
        self.broken.update(text.encode() for text in texts)
        facts = [signed(Outgoing(new_id(), self.subject, text.encode(), "req-7")) for text in texts]
        wait_until(lambda: len(self.bus.publish(facts)) == len(facts), "the publication", timeout_seconds=15)
        wait_until(
            lambda: self.stub.ListParked(pb.ListParkedRequest()).total == len(texts),
            "the events to be parked",
            timeout_seconds=20,
        )
        return [str(fact.event_id) for fact in facts]

    def notes(self) -> list[str]:
        with self.db.transaction() as tx:
            return list(tx.scalars(select(Note.text).order_by(Note.text)))


@pytest.fixture
def world(db: Database, bus: Bus) -> Iterator[World]:
    subject = f"fiatgate.test.{uuid.uuid4().hex}"
    broken: set[bytes] = set()

    def handle(tx: Session, event: Incoming) -> None:
        tx.add(Note(id=new_id(), text=event.payload.decode()))
        if event.payload in broken:
            raise ValueError("can't swallow it")

    durable = f"durable-{subject.rpartition('.')[2]}"
    make_consumer(bus, durable, subject)
    consumer = Consumer(
        durable,
        handle,
        db=db,
        bus=bus,
        inbox=Inbox,
        parked=Parked,
        verifier=verifier(),
        clock=ManualClock(),
        park_after_failures=2,
        first_retry_seconds=0.01,
    )
    stop = Stop()
    thread = threading.Thread(target=consumer.run, args=(stop,), daemon=True)
    thread.start()
    with serving(parked.add_to, consumer) as address, connected(address) as channel:
        yield World(db, bus, consumer, subject, ParkedServiceStub(channel), broken)
    stop.set()
    thread.join(15)
    assert not thread.is_alive()


def test_a_poisoned_event_parks_is_listed_and_takes_effect_once_after_the_fix(world: World) -> None:
    (event_id,) = world.park("poison")
    (event,) = world.stub.ListParked(pb.ListParkedRequest()).events
    assert (event.consumer, event.event_id, event.subject) == (world.consumer.name, event_id, world.subject)
    assert (event.attempts, event.error, event.request_id) == (2, "ValueError: can't swallow it", "req-7")
    assert event.failed_at.ToDatetime(START.tzinfo) == event.parked_at.ToDatetime(START.tzinfo) == START

    one = pb.RetryParkedRequest(event_id=event_id)
    answer = world.stub.RetryParked(one)
    assert (answer.retried, answer.mended) == (1, 0), "nothing is mended yet"
    assert world.stub.ListParked(pb.ListParkedRequest()).events[0].attempts == 3
    assert world.notes() == []

    with world.db.transaction() as tx:
        tx.execute(update(Parked).values(attempts=2147483647))
    assert world.stub.RetryParked(one).retried == 1, "a count that SQL wrote stops nothing"

    world.broken.clear()
    answers = [world.stub.RetryParked(one) for _ in range(2)]
    assert [(each.retried, each.mended) for each in answers] == [(1, 1), (0, 0)]
    assert world.notes() == ["poison"]
    assert world.stub.ListParked(pb.ListParkedRequest()).total == 0


def test_all_are_retried_in_bounded_calls_and_what_still_fails_stays(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kit.events.consumer, "RETRY_ROWS", 2)
    ids = world.park("a", "b", "c")
    (oldest,) = world.stub.ListParked(pb.ListParkedRequest(limit=1)).events
    assert oldest.event_id == ids[0]
    place = pb.ListParkedRequest(after_event_id=oldest.event_id, after_parked_at=oldest.parked_at)
    assert [each.event_id for each in world.stub.ListParked(place).events] == ids[1:]
    world.broken.remove(b"a")
    world.broken.remove(b"c")
    first = world.stub.RetryParked(pb.RetryParkedRequest())
    assert (first.retried, first.mended, first.last_event_id, first.more) == (2, 1, ids[1], True)
    second = world.stub.RetryParked(pb.RetryParkedRequest(after_event_id=first.last_event_id))
    assert (second.retried, second.mended, second.last_event_id, second.more) == (1, 1, ids[2], False)
    assert world.notes() == ["a", "c"]
    assert [each.event_id for each in world.stub.ListParked(pb.ListParkedRequest()).events] == [ids[1]]


def test_values_out_of_bounds_are_refused(world: World) -> None:
    for limit in (1001, -1):
        with pytest.raises(Refused, match="VALIDATION_ERROR"):
            world.stub.ListParked(pb.ListParkedRequest(limit=limit))
    half = pb.ListParkedRequest(after_event_id=UNKNOWN)
    with pytest.raises(Refused, match="VALIDATION_ERROR"):
        world.stub.ListParked(half)
    for request in (pb.RetryParkedRequest(event_id="17"), pb.RetryParkedRequest(after_event_id="")):
        with pytest.raises(Refused, match="VALIDATION_ERROR"):
            world.stub.RetryParked(request)


def test_an_event_that_is_not_parked_is_not_retried(world: World) -> None:
    answer = world.stub.RetryParked(pb.RetryParkedRequest(event_id=UNKNOWN))
    assert (answer.retried, answer.mended, answer.more) == (0, 0, False)
