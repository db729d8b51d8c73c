"""Facts on their way out: a row written in the transaction that made the fact true (DESIGN section 3).

A service's models.py names the tables: `class Outbox(OutboxColumns, Base)`, `class BusState(BusStateColumns,
Base)`. `kit.relay` carries the rows to JetStream.
"""

import uuid
from datetime import datetime
from typing import Any

from google.protobuf.message import Message
from sqlalchemy import Index, insert, text
from sqlalchemy.orm import Mapped, Session, declared_attr, mapped_column

from kit import request_id, tracing
from kit.db import wake_after_commit
from kit.ids import new_id
from kit.worker import Signal

MAX_PAYLOAD_BYTES = 512 * 1024
"""Half of what a NATS server takes: a fact that could never be published must not be written."""


class OutboxColumns:
    """One fact to announce; `id` is the event's id everywhere, `published_at` null until JetStream has it."""

    __tablename__ = "outbox"

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    subject: Mapped[str]
    payload: Mapped[bytes]
    request_id: Mapped[str]
    # Of the span that made the fact true (kit.tracing); null without traces.
    traceparent: Mapped[str | None]
    created_at: Mapped[datetime]
    published_at: Mapped[datetime | None]

    @declared_attr.directive
    @classmethod
    def __table_args__(cls) -> Any:
        return (
            Index("ix_outbox_unpublished", "id", postgresql_where=text("published_at IS NULL")),
            Index("ix_outbox_published", "published_at", postgresql_where=text("published_at IS NOT NULL")),
        )


class BusStateColumns:
    """Which incarnation of the stream the outbox was published to: a younger one knows nothing of it."""

    __tablename__ = "bus_state"

    stream: Mapped[str] = mapped_column(primary_key=True)
    stream_created_at: Mapped[datetime]


def announce(
    tx: Session,
    outbox: type[OutboxColumns],
    *,
    subject: str,
    message: Message,
    at: datetime,
    signal: Signal,
    event_id: uuid.UUID | None = None,
) -> uuid.UUID:
    """Write the fact and wake the relay once it is committed; returns the event's id.

    The current request's id and its trace travel along. Raises `ValueError` when the message is larger than 512 KiB.
    """
    payload = message.SerializeToString()
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(
            f"{subject}: {len(payload)} bytes are more than an event may have ({MAX_PAYLOAD_BYTES})"
        )
    event_id = event_id or new_id()
    tx.execute(
        insert(outbox).values(
            id=event_id,
            subject=subject,
            payload=payload,
            request_id=request_id.current(),
            traceparent=tracing.traceparent() or None,
            created_at=at,
        )
    )
    wake_after_commit(tx, signal)
    return event_id
