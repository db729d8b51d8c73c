"""Rows as operations and messages see them: values, which change nothing in the database."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from services.webhooks.domain import AttemptStatus, EventStatus, Trigger


@dataclass(frozen=True, slots=True)
class EventView:
    """An event with the state of its delivery. Lists of stuck events leave its payload empty."""

    id: int
    event_type: str
    payload_event_id: UUID
    invoice_id: UUID
    merchant_id: UUID
    status: EventStatus
    callback_url: str
    destination: str
    payload: bytes
    auto_attempts: int
    manual_attempts: int
    next_retry_at: datetime | None
    last_manual_at: datetime | None
    locked_at: datetime | None
    locked_by: str | None
    lease_token: UUID | None
    lease_until: datetime | None
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One request to a receiver and its result; `created_at` is its start."""

    id: int
    try_number: int
    trigger: Trigger
    status: AttemptStatus
    http_status: int | None
    response_headers: Mapping[str, str] | None
    response_body: str | None
    error_message: str | None
    duration_ms: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class EventHistory:
    """An event and its attempts by try_number, at most the newest hundred (`store.events.HISTORY_ATTEMPTS`)."""

    event: EventView
    attempts: Sequence[AttemptView]
