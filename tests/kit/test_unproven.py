"""kit.events.consumer against forgers: no money is made, and no true fact waits."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest
from sqlalchemy import insert, text
from sqlalchemy.orm import Session
from structlog.testing import capture_logs

import kit.events.parked
from kit.base.ids import new_id
from kit.db.database import Database
from kit.events.bus.connection import Bus
from kit.events.bus.messages import Incoming
from kit.events.consumer import Consumer
from kit.events.inbox import _take_in
from kit.events.parked import MayBeTrue, Retried, unproven_id
from kit.events.proof import Verifier
from kit.events.signing import Signer, new_private_key
from tests.kit.consuming import Make, counted, fact, note, notes, parked, running, wait_notes, wait_parked
from tests.kit.tables import Parked
from tests.support.clock import START
from tests.support.signing import PUBLIC_KEYS, delivered, signed


@pytest.fixture
def consumer(make: Make) -> Iterator[Consumer]:
    with running(make()) as started:
        yield started


# -- forgers


def test_an_unsigned_event_has_no_effect_and_is_parked_at_once_and_counted(
    db: Database, bus: Bus, subject: str, consumer: Consumer
) -> None:
    forged = fact(subject, "forged")
    bus.publish([forged])
    (row,) = wait_parked(db, 1)
    assert row.parked_at is not None
    assert (row.attempts, row.payload, row.claimed_id) == (1, b"forged", forged.event_id)
    assert row.error == "Unproven: it carries no signature"
    assert counted("events_unproven_total", consumer=consumer.name, reason="unsigned") == 1
    bus.publish([signed(fact(subject, "true"))])
    wait_notes(db, "true")
    assert consumer.retry_parked() == Retried(1, 0, row.event_id, more=False)
    assert notes(db) == ["true"]


def test_forgeries_in_a_batch_do_not_keep_true_events_waiting(
    db: Database, bus: Bus, subject: str, make: Make
) -> None:
    facts = [fact(subject, f"{number:02}") for number in range(20)]
    bus.publish([signed(each) if number % 2 else each for number, each in enumerate(facts)])
    with running(make()):
        wait_notes(db, *(f"{number:02}" for number in range(1, 20, 2)))
        assert {row.payload for row in wait_parked(db, 10)} == {each.payload for each in facts[::2]}


def test_a_forgery_under_a_true_events_id_does_not_block_the_true_one(
    db: Database, bus: Bus, subject: str, consumer: Consumer
) -> None:
    true = signed(fact(subject, "true"))
    bus.publish([replace(true, payload=b"forged")])
    (row,) = wait_parked(db, 1)
    assert row.event_id != true.event_id
    assert bus.publish([true]) == [true.event_id]  # JetStream knows the id already, and drops it by itself
    wait_notes(db, "true")
    bus.publish([true])
    bus.publish([signed(fact(subject, "last"))])
    wait_notes(db, "last", "true")
    assert [(each.payload, each.claimed_id) for each in parked(db)] == [(b"forged", true.event_id)]


def test_a_forgery_does_not_take_the_place_of_a_true_event_that_is_parked(
    db: Database, bus: Bus, subject: str, make: Make
) -> None:
    broken = threading.Event()
    broken.set()

    def handle(tx: Session, event: Incoming) -> None:
        if broken.is_set():
            raise ValueError("a bug")
        note(tx, event)

    consumer = make(handle, park_after_failures=1)
    true = signed(fact(subject, "true"))
    consumer.handle(delivered(true))
    consumer.handle(delivered(replace(true, payload=b"forged")))
    assert {(row.event_id == true.event_id, row.payload) for row in parked(db)} == {
        (True, b"true"),
        (False, b"forged"),
    }
    broken.clear()
    retried = consumer.retry_parked()
    assert (retried.retried, retried.mended) == (2, 1)
    assert notes(db) == ["true"]


def test_an_event_of_a_key_that_is_added_later_takes_effect_once(
    db: Database, bus: Bus, subject: str, make: Make
) -> None:
    new = Signer(new_private_key())
    true = signed(fact(subject, "true"), new)
    with running(make()):
        bus.publish([true])
        (row,) = wait_parked(db, 1)
    assert "no key of FIATGATE_FACT_PUBLIC_KEYS" in row.error
    both = Verifier((*PUBLIC_KEYS, new.public_key))
    mended = make(verifier=both)
    assert mended.retry_parked() == Retried(1, 1, row.event_id, more=False)
    mended.handle(delivered(true))
    assert notes(db) == ["true"]
    assert parked(db) == []


def test_what_was_parked_unsigned_is_parked_no_more_once_it_is_announced_with_a_signature(
    db: Database, bus: Bus, subject: str, consumer: Consumer
) -> None:
    bus.publish([fact(subject, "true")])
    wait_parked(db, 1)
    bus.publish([signed(fact(subject, "true"))])
    wait_notes(db, "true")
    assert parked(db) == []


def test_the_same_forgery_again_and_again_is_one_row(db: Database, subject: str, make: Make) -> None:
    consumer = make()
    forged = fact(subject, "forged")
    for _ in range(3):
        consumer.handle(delivered(forged))
    (row,) = parked(db)
    assert row.attempts == 3
    assert [(each.event_id, each.claimed_id) for each in consumer.list_parked(limit=9)[0]] == [
        (row.event_id, forged.event_id)
    ]


def test_a_flood_of_forgeries_fills_no_disk_and_true_failures_are_parked_beside_it(
    db: Database, subject: str, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handle(tx: Session, event: Incoming) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(kit.events.parked, "MOST_PARKED", 3)
    consumer = make(handle, park_after_failures=1)
    acknowledged: list[int] = []
    first, *others = (fact(subject, f"forged {number}") for number in range(9))
    for forged in (first, *others):
        consumer.handle(delivered(forged, acknowledge=lambda: acknowledged.append(1)))
    assert len(acknowledged) == 9
    assert len(parked(db)) == 3
    assert counted("events_total", consumer=consumer.name, outcome="dropped") == 6
    consumer.handle(delivered(first))
    assert counted("events_total", consumer=consumer.name, outcome="dropped") == 6, "it is kept already"
    true = signed(fact(subject, "true"))
    consumer.handle(delivered(true))
    assert true.event_id in {row.event_id for row in parked(db)}


def test_a_message_without_an_id_has_no_effect_and_is_counted(
    db: Database, bus: Bus, subject: str, consumer: Consumer
) -> None:
    before = counted("nats_messages_dropped_total")

    async def publish() -> None:
        await bus._client.jetstream().publish(subject, b"forged")

    bus._loop.call(publish, timeout_seconds=5)
    bus.publish([signed(fact(subject, "true"))])
    wait_notes(db, "true")
    assert counted("nats_messages_dropped_total") == before + 1


def test_a_true_event_is_never_discarded_and_what_may_be_true_only_on_demand(
    db: Database, subject: str, make: Make
) -> None:
    def refuse(tx: Session, event: Incoming) -> None:
        raise ValueError("a bug")

    consumer = make(refuse, park_after_failures=1)
    true = signed(fact(subject, "true"))
    consumer.handle(delivered(true))
    unsigned = fact(subject, "unsigned")
    new_key = signed(fact(subject, "of a key that is missing here"), Signer(new_private_key()))
    forged = replace(signed(fact(subject, "true once")), payload=b"forged")
    unproven = [delivered(each) for each in (unsigned, new_key, forged)]
    with capture_logs() as lines:
        for event in unproven:
            consumer.handle(event)
    assert [(line["parked_id"], line["event_id"]) for line in lines] == [
        (str(unproven_id(event)), str(event.event_id)) for event in unproven
    ]
    no_key = "no key of FIATGATE_FACT_PUBLIC_KEYS has the id .*, so it may be a true event"
    with pytest.raises(MayBeTrue, match=no_key):
        consumer.discard_parked(unproven_id(unproven[1]))
    with pytest.raises(MayBeTrue, match="retried"):
        consumer.discard_parked(true.event_id, even_if_true=True)
    for forgery in (unproven[0], unproven[2]):
        assert [consumer.discard_parked(unproven_id(forgery)) for _ in range(2)] == [True, False]
    with capture_logs() as lines:
        assert consumer.discard_parked(unproven_id(unproven[1]), even_if_true=True)
    assert lines[0]["parked_id"] == str(unproven_id(unproven[1]))
    assert lines[0]["event_id"] == str(new_key.event_id)
    assert {row.payload for row in parked(db)} == {b"true"}


def test_headers_that_no_table_takes_stop_no_event_behind_them(
    db: Database, bus: Bus, subject: str, consumer: Consumer
) -> None:
    forged = replace(fact(subject, "forged"), request_id="a\x00b\x07", signature="\x00ÿ.\x01" + "x" * 5000)
    bus.publish([forged])
    bus.publish([signed(fact(subject, "behind"))])
    wait_notes(db, "behind")
    (row,) = wait_parked(db, 1)
    assert row.request_id == "ab"


def test_a_parked_event_that_is_proven_later_and_fails_stays_one_row(
    db: Database, subject: str, make: Make
) -> None:
    def refuse(tx: Session, event: Incoming) -> None:
        raise ValueError("a bug")

    signer = Signer(new_private_key())
    event = signed(fact(subject, "of a new key"), signer)
    make(refuse).handle(delivered(event))
    with_its_key = Verifier([signer.public_key])
    retried = make(refuse, verifier=with_its_key).retry_parked()
    assert (retried.retried, retried.mended) == (1, 0)
    (row,) = parked(db)
    assert (row.error, row.attempts) == ("ValueError: a bug", 2)
    assert row.parked_at is not None


# -- much that is parked


def test_parked_events_are_found_by_an_index_however_many_there_are(db: Database, subject: str) -> None:
    rows = [
        {
            "event_id": new_id(),
            "subject": subject,
            "payload": f"parked {number}".encode() * 20,
            "request_id": "",
            "error": "a bug",
            "attempts": 20,
            "failed_at": START,
            "parked_at": START,
        }
        for number in range(5000)
    ]
    with db.transaction() as tx:
        tx.execute(insert(Parked), rows)
    with db.autocommit() as connection:
        connection.execute(text("ANALYZE parked"))
        values = {"ids": [new_id()], "digests": [b"x" * 32], "at": START}
        hot = _take_in("inbox", "parked")
        connection.exec_driver_sql(hot.prepare)
        plan = "\n".join(connection.exec_driver_sql(f"EXPLAIN {hot.execute}", values).scalars())
    assert "ix_parked_words" in plan
    assert "Seq Scan on parked" not in plan
