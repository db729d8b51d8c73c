"""kit.events.consumer on a database that is busy: no money is set aside."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from deploy.local.waiting import wait_until
from kit.db.database import Database
from kit.events.bus.connection import Bus
from kit.events.bus.messages import Incoming
from tests.kit.consuming import Make, counted, fact, note, notes, parked, running, wait_notes
from tests.support.clock import ManualClock
from tests.support.signing import delivered, signed

ROUNDS = 25
"""More failures than an event of a bug is given."""

BUSY: dict[str, dict[str, float]] = {
    "55P03": {"lock_timeout_seconds": 0.02, "statement_timeout_seconds": 10},
    "57014": {"lock_timeout_seconds": 10, "statement_timeout_seconds": 0.05},
}


@contextmanager
def busy(db: Database) -> Iterator[None]:
    """Nothing can be noted meanwhile."""
    with db.transaction() as tx:
        tx.execute(text("LOCK TABLE note"))
        yield


@pytest.mark.parametrize("limits", BUSY.values(), ids=BUSY)
def test_a_busy_database_parks_nothing_however_often_and_then_the_effect_happens_once(
    db: Database, make_db: Callable[..., Database], subject: str, make: Make, limits: dict[str, float]
) -> None:
    clock = ManualClock()
    consumer = make(db=make_db(**limits), clock=clock, first_retry_seconds=1)
    true = signed(fact(subject, "true"))
    pauses: list[float] = []
    with busy(db):
        for number in range(ROUNDS):
            event = delivered(true, acknowledge=lambda: pytest.fail("given up"), retry_after=pauses.append)
            consumer.handle(replace(event, deliveries=number + 1))
            clock.advance(seconds=60)
        assert parked(db) == []
    assert pauses == [min(2**number, 60) for number in range(ROUNDS)]
    assert consumer.health().detail == "1 events wait for the database, the longest for 1500 s"
    consumer.handle(delivered(true))
    consumer.handle(delivered(true))
    assert notes(db) == ["true"]
    assert consumer.health().detail == ""


def test_an_event_that_the_database_is_too_slow_for_does_not_keep_the_others_waiting(
    db: Database, make_db: Callable[..., Database], bus: Bus, subject: str, make: Make
) -> None:
    slow = threading.Event()
    slow.set()

    def handle(tx: Session, event: Incoming) -> None:
        if event.payload.startswith(b"slow") and slow.is_set():
            tx.execute(text("SELECT pg_sleep(10)"))
        note(tx, event)

    words = [f"{number:02}" for number in range(10)]
    bus.publish([signed(fact(subject, each)) for each in ("slow 1", "slow 2", "slow 3", *words)])
    impatient = make_db(statement_timeout_seconds=0.2)
    with running(make(handle, db=impatient, park_after_failures=1)) as consumer:
        wait_notes(db, *words)
        wait_until(lambda: "3 events wait" in consumer.health().detail, "the others", timeout_seconds=20)
        assert consumer.health().healthy
        assert counted("events_total", consumer=consumer.name, outcome="put_off") >= 3
        slow.clear()
        wait_notes(db, *words, "slow 1", "slow 2", "slow 3")
    assert parked(db) == []


def test_a_missing_right_or_table_is_not_the_events_failure(
    db: Database, bus: Bus, subject: str, make: Make
) -> None:
    missing = threading.Event()
    missing.set()

    def handle(tx: Session, event: Incoming) -> None:
        if missing.is_set():
            tx.execute(text("INSERT INTO not_migrated VALUES (1)"))
        note(tx, event)

    consumer = make(handle, park_after_failures=1)
    true = signed(fact(subject, "true"))
    consumer.handle(delivered(true))
    missing.clear()
    consumer.handle(delivered(true))
    assert notes(db) == ["true"]
    assert parked(db) == []


def test_what_violates_a_constraint_is_refused_and_parked(
    db: Database, bus: Bus, subject: str, make: Make
) -> None:
    consumer = make(park_after_failures=1)
    consumer.handle(delivered(signed(fact(subject, ""))))  # a note must not be empty
    (row,) = parked(db)
    assert "IntegrityError" in row.error
