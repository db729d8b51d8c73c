"""The outbox: each fact is a row, written in the transaction that made the fact true (docs/glossary.md#outbox).

A service's models.py names the tables: `class Outbox(OutboxColumns, Base)`, `class BusState(BusStateColumns,
Base)`. `kit.events.relay` carries the rows to JetStream.
"""

import functools
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from google.protobuf.message import Message
from sqlalchemy import Index, text
from sqlalchemy.orm import Mapped, Session, declared_attr, mapped_column

from kit.base import request_id
from kit.base.clock import monotonic_seconds
from kit.base.ids import new_id
from kit.db import prepared
from kit.db.database import after_commit, as_json
from kit.db.prepared import Prepared
from kit.events.bus.messages import Outgoing
from kit.events.signing import Signer
from kit.observe import tracing
from kit.work.worker import Signal

MAX_PAYLOAD_BYTES = 512 * 1024
"""Half of what a NATS server accepts: a fact that could never be published must not be written."""

MOST_FRESH = 1000
"""The most facts that wait in memory; the relay finds the others in the table."""


class OutboxColumns:
    """One fact to announce; `id` is the event's id everywhere, `published_at` is null until JetStream has stored it,
    `signature` is that of kit.events.signing.
    """

    __tablename__ = "outbox"

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    subject: Mapped[str]
    payload: Mapped[bytes]
    request_id: Mapped[str]
    # The span that made the fact true (kit.observe.tracing); null without traces.
    traceparent: Mapped[str | None]
    created_at: Mapped[datetime]
    published_at: Mapped[datetime | None]
    signature: Mapped[str | None]

    @declared_attr.directive
    @classmethod
    def __table_args__(cls) -> Any:
        return (
            Index("ix_outbox_unpublished", "id", postgresql_where=text("published_at IS NULL")),
            Index("ix_outbox_published", "published_at", postgresql_where=text("published_at IS NOT NULL")),
        )


class BusStateColumns:
    """The creation time of the stream that the outbox was published to: a newer stream lacks its facts."""

    __tablename__ = "bus_state"

    stream: Mapped[str] = mapped_column(primary_key=True)
    stream_created_at: Mapped[datetime]


class Announced:
    """The facts that this process has committed; `wake` is the signal of its relay."""

    def __init__(self) -> None:
        self.wake = Signal()
        self._room = Signal()
        self._fresh: deque[Outgoing] = deque(maxlen=MOST_FRESH)

    def add(self, facts: Sequence[Outgoing]) -> None:
        self._fresh.extend(facts)
        self.wake.set()

    def take(self, limit: int) -> list[Outgoing]:
        """Removes and returns the oldest of these facts, at most `limit`. Only one thread may call it."""
        taken = [self._fresh.popleft() for _ in range(min(limit, len(self._fresh)))]
        self._room.set()
        return taken

    def ids(self) -> set[uuid.UUID]:
        """Returns the ids of the facts that wait in memory."""
        return {fact.event_id for fact in self._fresh.copy()}

    def wait_for_room(self, most: int, *, timeout_seconds: float) -> None:
        """Waits until at most `most` facts wait in memory, or the time is over. For work that can wait, so that the
        facts of other work are not behind it.
        """
        give_up_at_seconds = monotonic_seconds() + timeout_seconds
        while len(self._fresh) > most and monotonic_seconds() < give_up_at_seconds:
            self._room.wait(timeout_seconds)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact to announce, under the id of its event."""

    event_id: uuid.UUID
    message: Message


def announce(
    tx: Session,
    outbox: type[OutboxColumns],
    *,
    subject: str,
    message: Message,
    at: datetime,
    announced: Announced,
    signer: Signer,
    event_id: uuid.UUID | None = None,
) -> uuid.UUID:
    """Signs the fact, writes it, and passes it to the relay once it is committed; returns the event's id.

    The current request's id and its trace are part of it. Raises `ValueError` when the message is larger than 512 KiB.
    """
    fact = Fact(event_id or new_id(), message)
    announce_all(tx, outbox, [fact], subject=subject, at=at, announced=announced, signer=signer)
    return fact.event_id


def announce_all(
    tx: Session,
    outbox: type[OutboxColumns],
    facts: Sequence[Fact],
    *,
    subject: str,
    at: datetime,
    announced: Announced,
    signer: Signer,
) -> None:
    """Does the same for many facts, which one statement writes."""
    signed = [_signed(fact, subject, signer) for fact in facts]
    rows = [
        {
            "id": fact.event_id,
            "subject": fact.subject,
            "payload": fact.payload,
            "request_id": fact.request_id,
            "traceparent": fact.traceparent or None,
            "signature": fact.signature,
            "created_at": at,
        }
        for fact in signed
    ]
    prepared.later(tx, _insert(outbox.__tablename__), {"rows": as_json(rows)})
    after_commit(tx, announced.add, signed)


def _signed(fact: Fact, subject: str, signer: Signer) -> Outgoing:
    payload = fact.message.SerializeToString()
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(
            f"{subject}: {len(payload)} bytes are more than an event may have ({MAX_PAYLOAD_BYTES})"
        )
    return Outgoing(
        fact.event_id,
        subject,
        payload,
        request_id.current(),
        tracing.traceparent(),
        signer.sign(subject=subject, event_id=fact.event_id, payload=payload),
    )


@functools.cache
def _insert(outbox: str) -> Prepared[None]:
    return Prepared(
        f"insert_into_{outbox}",
        f"INSERT INTO {outbox} SELECT * FROM jsonb_populate_recordset(NULL::{outbox}, CAST(:rows AS jsonb))",  # noqa: S608
        {"rows": "text"},
        lambda: None,
    )
