"""The tables of a service that exists in these tests only."""

import uuid

from sqlalchemy import CheckConstraint, UniqueConstraint
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import kit.db.database
from kit.events.inbox import InboxColumns, ParkedColumns
from kit.events.outbox import BusStateColumns, OutboxColumns


class Base(DeclarativeBase):
    metadata = kit.db.database.metadata()
    type_annotation_map = kit.db.database.TYPES


class Outbox(OutboxColumns, Base):
    pass


class BusState(BusStateColumns, Base):
    pass


class Inbox(InboxColumns, Base):
    pass


class Parked(ParkedColumns, Base):
    pass


class Note(Base):
    """What a test writes: one effect, one line."""

    __tablename__ = "note"
    __table_args__ = (UniqueConstraint("text"), CheckConstraint("text <> ''", name="not_empty"))

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    text: Mapped[str]
