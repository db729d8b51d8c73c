"""Helpers for the tests of kit.events.consumer: a handler that writes notes, a running consumer, and their results."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from deploy.local.waiting import wait_until
from kit.base.ids import new_id
from kit.db.database import Database, table_of
from kit.events.bus.messages import Incoming, Outgoing
from kit.events.consumer import Consumer
from kit.observe import metrics
from kit.work.worker import Stop
from tests.kit.tables import Note, Parked

Make = Callable[..., Consumer]


def note(tx: Session, event: Incoming) -> None:
    tx.add(Note(id=new_id(), text=event.payload.decode()))


@contextmanager
def running(consumer: Consumer) -> Iterator[Consumer]:
    stop = Stop()
    thread = threading.Thread(target=consumer.run, args=(stop,), daemon=True)
    thread.start()
    try:
        yield consumer
    finally:
        stop.set()
        thread.join(15)
    assert not thread.is_alive()


def notes(db: Database) -> list[str]:
    with db.transaction() as tx:
        return list(tx.scalars(select(Note.text).order_by(Note.text)))


def parked(db: Database) -> Sequence[Any]:
    with db.transaction() as tx:
        return tx.execute(select(*table_of(Parked).c).order_by(Parked.event_id)).all()


def wait_parked(db: Database, count: int) -> Sequence[Any]:
    wait_until(lambda: len(parked(db)) == count, f"{count} parked events", timeout_seconds=20)
    return parked(db)


def wait_notes(db: Database, *texts: str) -> None:
    wait_until(lambda: notes(db) == sorted(texts), f"the notes {texts}", timeout_seconds=20)


def counted(name: str, **labels: str) -> float:
    return metrics.REGISTRY.get_sample_value(f"fiatgate_{name}", labels) or 0


def fact(subject: str, words: str) -> Outgoing:
    return Outgoing(new_id(), subject, words.encode(), "req-7")
