"""Tables of the webhooks service, nothing else. The constraints guard every invariant here, whatever the code does."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, ForeignKey, Identity, Index, UniqueConstraint, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import kit.db.database
from kit.events.inbox import InboxColumns, ParkedColumns


class Base(DeclarativeBase):
    metadata = kit.db.database.metadata()
    type_annotation_map = kit.db.database.TYPES


class Event(Base):
    """One webhook: its content and address, the state of its delivery, and the worker that holds it."""

    __tablename__ = "events"
    __table_args__ = (
        UniqueConstraint("invoice_id"),
        UniqueConstraint("payload_event_id"),
        # For the next due time: pending events only, in order of time.
        Index("ix_events_due", "next_retry_at", postgresql_where=text("status = 'pending'")),
        # For claims: the same by lane, so that a claim in one lane never reads another lane's backlog.
        Index(
            "ix_events_lanes",
            "merchant_id",
            "destination",
            "next_retry_at",
            "id",
            postgresql_where=text("status = 'pending'"),
        ),
        # For operators: newest first. Those that are not delivered are few.
        Index("ix_events_list", "created_at", "id"),
        Index(
            "ix_events_list_unsent",
            "status",
            "created_at",
            "id",
            postgresql_where=text("status <> 'success'"),
        ),
        # For members: those of their merchant, newest first. Of its pending ones, `ix_events_lanes` has all.
        Index("ix_events_merchant", "merchant_id", "created_at", "id"),
        # For their programs: those after the last one that they read.
        Index("ix_events_merchant_order", "merchant_id", "id"),
        Index(
            "ix_events_merchant_dead",
            "merchant_id",
            "created_at",
            "id",
            postgresql_where=text("status = 'dead'"),
        ),
        CheckConstraint("status IN ('pending', 'success', 'dead')", name="status"),
        # A pending event without a next attempt would wait for ever; a finished one must not be sent automatically.
        CheckConstraint("(status = 'pending') = (next_retry_at IS NOT NULL)", name="next_retry_at"),
        # A lease has a holder, a token and times, or none of them.
        CheckConstraint("num_nulls(locked_at, locked_by, lease_token, lease_until) IN (0, 4)", name="lease"),
        CheckConstraint("auto_attempts >= 0 AND manual_attempts >= 0", name="attempts"),
        # Claims change no indexed column: with free space on the page they write to no index.
        {"postgresql_with": {"fillfactor": 70}},
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    payload_event_id: Mapped[UUID]
    invoice_id: Mapped[UUID]
    merchant_id: Mapped[UUID]
    # The key that created the invoice: its secret signs while it is active.
    key_id: Mapped[UUID]
    event_type: Mapped[str]
    status: Mapped[str]
    callback_url: Mapped[str]
    # host:port of the callback URL; with the merchant it names the lane.
    destination: Mapped[str]
    # The exact bytes of the body, the same on every attempt.
    payload: Mapped[bytes]
    auto_attempts: Mapped[int]
    manual_attempts: Mapped[int]
    next_retry_at: Mapped[datetime | None]
    # The start of the last manual attempt, for the cooldown.
    last_manual_at: Mapped[datetime | None]
    locked_at: Mapped[datetime | None]
    locked_by: Mapped[str | None]
    # The fence: a result is written only under the token of its claim.
    lease_token: Mapped[UUID | None]
    # After this time the claim is void and the event is due again.
    lease_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    # The request that led to the event is named in the log and the trace (kit.observe.tracing) of each attempt.
    request_id: Mapped[str | None]
    traceparent: Mapped[str | None]
    # Made from the terms (delivery/seals.py).
    seal: Mapped[str | None]


class Attempt(Base):
    """One request to a receiver and its result: append-only."""

    __tablename__ = "attempts"
    __table_args__ = (
        UniqueConstraint("event_id", "try_number"),
        CheckConstraint("try_number > 0", name="try_number"),
        CheckConstraint("trigger IN ('auto', 'manual')", name="trigger"),
        CheckConstraint("status IN ('success', 'failure')", name="status"),
        CheckConstraint("status = 'failure' OR http_status BETWEEN 200 AND 299", name="http_status"),
        CheckConstraint("duration_ms >= 0", name="duration_ms"),
        CheckConstraint(
            "jsonb_typeof(response_headers) = 'object' AND octet_length(CAST(response_headers AS text)) <= 131072"
            """ AND NOT jsonb_path_exists(response_headers, 'strict $.* ? (@.type() != "string")')""",
            name="response_headers",
        ),
    )

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    event_id: Mapped[int] = mapped_column(BigInteger, ForeignKey("events.id"))
    try_number: Mapped[int]
    trigger: Mapped[str]
    status: Mapped[str]
    http_status: Mapped[int | None]
    response_headers: Mapped[dict[str, Any] | None]
    response_body: Mapped[str | None]
    error_message: Mapped[str | None]
    duration_ms: Mapped[int]
    # The start of the attempt.
    created_at: Mapped[datetime]


class Inbox(InboxColumns, Base):
    pass


class Parked(ParkedColumns, Base):
    pass
