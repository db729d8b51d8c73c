"""Facts that came in: each event takes effect once, however often it is delivered (DESIGN section 3).

A service's models.py names the tables: `class Inbox(InboxColumns, Base)`, `class Parked(ParkedColumns,
Base)`.
"""

import uuid
from datetime import datetime
from typing import Any

from sqlalchemy import Index, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Mapped, Session, declared_attr, mapped_column


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
        return (Index("ix_parked_parked", "parked_at", postgresql_where=text("parked_at IS NOT NULL")),)


def first_time(tx: Session, inbox: type[InboxColumns], event_id: uuid.UUID, at: datetime) -> bool:
    """Note the event in this transaction; false when it has taken effect before."""
    noted = tx.execute(
        insert(inbox)
        .values(event_id=event_id, received_at=at)
        .on_conflict_do_nothing()
        .returning(inbox.event_id)
    )
    return noted.scalar_one_or_none() is not None
