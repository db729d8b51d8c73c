"""The inbox of incoming facts: each event takes effect once, however often it is delivered.

A service's models.py names the tables: `class Inbox(InboxColumns, Base)`, `class Parked(ParkedColumns,
Base)`.
"""

import functools
import hashlib
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Index, delete, select, text
from sqlalchemy.orm import Mapped, Session, declared_attr, mapped_column

from kit.db import prepared
from kit.db.database import Database
from kit.db.prepared import Prepared
from kit.events.bus.messages import Incoming


class InboxColumns:
    """The ids of the events that have taken effect. Kept longer than any outbox can announce them again."""

    __tablename__ = "inbox"

    event_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    received_at: Mapped[datetime] = mapped_column(index=True)


class ParkedColumns:
    """An event that failed here: its failures are counted (`parked_at` null), then it is parked for an operator."""

    __tablename__ = "parked"

    event_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    subject: Mapped[str]
    payload: Mapped[bytes]
    request_id: Mapped[str]
    error: Mapped[str]
    attempts: Mapped[int]
    failed_at: Mapped[datetime]
    parked_at: Mapped[datetime | None]
    signature: Mapped[str | None]
    # The id that an unproven event came under; null for the others, whose id is their `event_id`.
    claimed_id: Mapped[uuid.UUID | None]

    @declared_attr.directive
    @classmethod
    def __table_args__(cls) -> Any:
        return (
            Index("ix_parked_parked", "parked_at", postgresql_where=text("parked_at IS NOT NULL")),
            # By the payload: `take_in` searches for it with every event.
            Index("ix_parked_words", text("sha256(payload)")),
        )


_OF_EVENTS: Final = "event_id = ANY(:ids) OR sha256(payload) = ANY(:digests)"


@functools.cache
def _take_in(inbox: str, parked: str) -> Prepared[uuid.UUID]:
    # In the order of ids: two transactions with the same events in different orders would wait for each other.
    return Prepared(
        f"take_in_{inbox}",
        f"""
WITH taken_up AS (
    DELETE FROM {parked} WHERE {_OF_EVENTS}
)
INSERT INTO {inbox} (event_id, received_at)
SELECT id, :at FROM unnest(:ids) AS id ORDER BY id
ON CONFLICT DO NOTHING
RETURNING event_id
""",  # noqa: S608
        {"ids": "uuid[]", "digests": "bytea[]", "at": "timestamptz"},
        lambda event_id: event_id,
    )


def take_in(
    tx: Session,
    inbox: type[InboxColumns],
    parked: type[ParkedColumns],
    events: Sequence[Incoming],
    at: datetime,
) -> set[uuid.UUID]:
    """Notes the events in this transaction; returns the ids of those that had no effect before. One round trip.

    Removes them from the parked events, and every parked event with the same payload: a parked event that is announced
    again has another id, and takes effect now.
    """
    statement = _take_in(inbox.__tablename__, parked.__tablename__)
    return set(prepared.rows(tx, statement, _values_of(events) | {"at": at}))


@functools.cache
def _clear(parked: str) -> Prepared[None]:
    return Prepared(
        f"clear_{parked}",
        f"DELETE FROM {parked} WHERE {_OF_EVENTS}",  # noqa: S608
        {"ids": "uuid[]", "digests": "bytea[]"},
        lambda: None,
    )


def clear_parked(db: Database, parked: type[ParkedColumns], events: Sequence[Incoming]) -> None:
    """Removes the same parked events as `take_in`, in a transaction of its own."""
    with db.autocommit() as connection:
        prepared.rows(connection, _clear(parked.__tablename__), _values_of(events))


def _values_of(events: Sequence[Incoming]) -> dict[str, Any]:
    return {
        "ids": [event.event_id for event in events],
        "digests": [hashlib.sha256(event.payload).digest() for event in events],
    }


def forget(db: Database, inbox: type[InboxColumns], *, before: datetime, limit: int) -> int:
    """Deletes at most `limit` ids of events that took effect before this time; returns how many."""
    old = select(inbox.event_id).where(inbox.received_at < before).limit(limit)
    with db.autocommit() as connection:
        return connection.execute(delete(inbox).where(inbox.event_id.in_(old.scalar_subquery()))).rowcount
