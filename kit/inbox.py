"""Facts that came in: each event takes effect once, however often it is delivered.

A service's models.py names the tables: `class Inbox(InboxColumns, Base)`, `class Parked(ParkedColumns,
Base)`.
"""

import functools
import hashlib
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ARRAY, Index, LargeBinary, TextClause, Uuid, bindparam, delete, select, text
from sqlalchemy.orm import Mapped, Session, declared_attr, mapped_column

from kit.bus import Incoming
from kit.db import Database


class InboxColumns:
    """The ids of the events that have taken effect. Kept longer than any outbox can announce them again."""

    __tablename__ = "inbox"

    event_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    received_at: Mapped[datetime] = mapped_column(index=True)


class ParkedColumns:
    """An event that failed here: counted at first (`parked_at` null), then set aside until somebody looks."""

    __tablename__ = "parked"

    event_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    subject: Mapped[str]
    payload: Mapped[bytes]
    request_id: Mapped[str]
    error: Mapped[str]
    attempts: Mapped[int]
    failed_at: Mapped[datetime]
    parked_at: Mapped[datetime | None]

    @declared_attr.directive
    @classmethod
    def __table_args__(cls) -> Any:
        return (
            Index("ix_parked_parked", "parked_at", postgresql_where=text("parked_at IS NOT NULL")),
            # By what it says: `take_in` asks for it with every event.
            Index("ix_parked_words", text("sha256(payload)")),
        )


@functools.cache
def _take_in(inbox: str, parked: str) -> TextClause:
    # In the order of ids: two that take in the same events in different orders would wait for each other.
    return text(f"""
WITH taken_up AS (
    DELETE FROM {parked} WHERE event_id = ANY(:ids) OR sha256(payload) = ANY(:digests)
)
INSERT INTO {inbox} (event_id, received_at)
SELECT id, :at FROM unnest(:ids) AS id ORDER BY id
ON CONFLICT DO NOTHING
RETURNING event_id
""").bindparams(bindparam("ids", type_=ARRAY(Uuid)), bindparam("digests", type_=ARRAY(LargeBinary)))  # noqa: S608


def take_in(
    tx: Session,
    inbox: type[InboxColumns],
    parked: type[ParkedColumns],
    events: Sequence[Incoming],
    at: datetime,
) -> set[uuid.UUID]:
    """Note the events in this transaction; the ids of those that have not taken effect before. One round trip.

    They are parked no more, nor is what has the same words: what was parked and is announced again comes under another
    id, and is done now.
    """
    values = {
        "ids": [event.event_id for event in events],
        "digests": [hashlib.sha256(event.payload).digest() for event in events],
    }
    statement = _take_in(inbox.__tablename__, parked.__tablename__)
    return set(tx.scalars(statement, values | {"at": at}))


def taken_before(db: Database, inbox: type[InboxColumns], event_ids: Sequence[uuid.UUID]) -> set[uuid.UUID]:
    """Those of the ids whose events have taken effect."""
    with db.autocommit() as connection:
        return set(connection.scalars(select(inbox.event_id).where(inbox.event_id.in_(event_ids))))


def forget(db: Database, inbox: type[InboxColumns], *, before: datetime, limit: int) -> int:
    """Delete at most `limit` ids of events that took effect before this time; how many they were."""
    old = select(inbox.event_id).where(inbox.received_at < before).limit(limit)
    with db.autocommit() as connection:
        return connection.execute(delete(inbox).where(inbox.event_id.in_(old.scalar_subquery()))).rowcount
