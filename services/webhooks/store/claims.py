"""The engine's statements: claim, release, record. Each is one round trip and its own transaction."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from services.webhooks.delivery.stages import Claimed, Outcome, Recorded
from services.webhooks.domain import AttemptStatus, Dead, Delivered, EventStatus, RetryAt, Trigger, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who claims, under which token, until when."""

    token: UUID
    worker: str
    now: datetime
    until: datetime


# The scan locks what it reads, so that engines running side by side take different events; rows beyond a
# destination's room are let go when the statement ends. A lease that ran out counts as none: that is the rescue.
_CLAIM = text("""
WITH rooms AS (
    SELECT * FROM json_to_recordset(:rooms) AS room (destination text, room int)
), due AS MATERIALIZED (
    SELECT id, destination, next_retry_at
    FROM events
    WHERE status = 'pending'
      AND next_retry_at <= :now
      AND (lease_until IS NULL OR lease_until <= :now)
      AND destination <> ALL (:full)
    ORDER BY next_retry_at
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
), picked AS (
    SELECT id
    FROM (
        SELECT id, destination, row_number() OVER (PARTITION BY destination ORDER BY next_retry_at) AS place FROM due
    ) AS placed
    LEFT JOIN rooms USING (destination)
    WHERE place <= coalesce(room, :default_room)
)
UPDATE events
SET locked_at = :now, locked_by = :worker, lease_token = :token, lease_until = :until, updated_at = :now
FROM picked
WHERE events.id = picked.id
RETURNING events.id AS event_id, payload_event_id, merchant_id, key_id, callback_url, destination, payload, status,
    next_retry_at, auto_attempts
""")


def claim_due(
    connection: Connection, lease: Lease, *, limit: int, rooms: Mapping[str, int], default_room: int
) -> list[Claimed]:
    """At most `limit` due events, oldest first, and of each destination at most its room (`default_room` if unnamed).

    Empty only when nothing is due that has room and that nobody else holds.
    """
    rows = connection.execute(
        _CLAIM,
        {
            "rooms": json.dumps(
                [{"destination": key, "room": room} for key, room in rooms.items() if room > 0]
            ),
            "full": [key for key, room in rooms.items() if room <= 0],
            "default_room": default_room,
            "limit": limit,
            "token": lease.token,
            "worker": lease.worker,
            "now": lease.now,
            "until": lease.until,
        },
    )
    claimed = [claimed_from_row(row._asdict(), lease, Trigger.AUTO) for row in rows]
    return sorted(claimed, key=lambda each: (each.next_retry_at is None, each.next_retry_at, each.event_id))


def claimed_from_row(row: dict[str, Any], lease: Lease, trigger: Trigger) -> Claimed:
    return Claimed(
        **{
            **row,
            "payload": bytes(row["payload"]),
            "status": EventStatus(row["status"]),
            "lease_token": lease.token,
            "lease_until": lease.until,
            "trigger": trigger,
        }
    )


_NEXT_DUE = text("""
SELECT min(greatest(next_retry_at, lease_until))
FROM events
WHERE status = 'pending' AND next_retry_at <= :horizon AND destination <> ALL (:full)
""")


def next_due_at(connection: Connection, *, horizon: datetime, full: Sequence[str]) -> datetime | None:
    """When the next event of a destination with room is due, leases counted; None when not before `horizon`."""
    at: datetime | None = connection.scalar(_NEXT_DUE, {"horizon": horizon, "full": list(full)})
    return at


_RELEASE = text("""
UPDATE events
SET locked_at = NULL, locked_by = NULL, lease_token = NULL, lease_until = NULL
FROM json_to_recordset(:claims) AS claim (event_id bigint, lease_token uuid)
WHERE events.id = claim.event_id AND events.lease_token = claim.lease_token
""")


def release(connection: Connection, claims: Sequence[Claimed]) -> None:
    """Give events back unsent: they are due again at once."""
    rows = [{"event_id": each.event_id, "lease_token": str(each.lease_token)} for each in claims]
    connection.execute(_RELEASE, {"claims": json.dumps(rows)})


# One statement: the event changes and gets its attempt, or, when the lease is another's by now, neither.
_RECORD = text("""
WITH outcome AS (
    SELECT * FROM json_to_recordset(:outcomes) AS outcome (
        event_id bigint, lease_token uuid, trigger text, event_status text, next_retry_at timestamptz,
        status text, http_status int, response_headers jsonb, response_body text, error_message text,
        duration_ms int, started_at timestamptz
    )
), fenced AS (
    UPDATE events
    SET status = outcome.event_status,
        next_retry_at = outcome.next_retry_at,
        auto_attempts = auto_attempts + (outcome.trigger = 'auto')::int,
        manual_attempts = manual_attempts + (outcome.trigger = 'manual')::int,
        last_manual_at = CASE WHEN outcome.trigger = 'manual' THEN outcome.started_at ELSE last_manual_at END,
        locked_at = NULL, locked_by = NULL, lease_token = NULL, lease_until = NULL,
        updated_at = :now
    FROM outcome
    WHERE events.id = outcome.event_id AND events.lease_token = outcome.lease_token
    RETURNING events.id, auto_attempts + manual_attempts AS try_number, events.next_retry_at
), attempt AS (
    INSERT INTO attempts (
        event_id, try_number, trigger, status, http_status, response_headers, response_body, error_message,
        duration_ms, created_at
    )
    SELECT fenced.id, try_number, trigger, status, http_status, response_headers, response_body, error_message,
        duration_ms, started_at
    FROM fenced JOIN outcome ON outcome.event_id = fenced.id
    RETURNING id, event_id
)
SELECT attempt.event_id, attempt.id AS attempt_id, fenced.next_retry_at
FROM attempt JOIN fenced ON fenced.id = attempt.event_id
""")


def record(
    connection: Connection, outcomes: Sequence[tuple[Outcome, Verdict]], *, now: datetime
) -> list[Recorded]:
    """Write outcomes with their verdicts; those whose lease is another's by now are left out of the answer.

    At most one outcome per event.
    """
    rows = [_outcome_row(outcome, verdict) for outcome, verdict in outcomes]
    written = connection.execute(_RECORD, {"outcomes": json.dumps(rows), "now": now})
    return [Recorded(**row._asdict()) for row in written]


def _outcome_row(outcome: Outcome, verdict: Verdict) -> dict[str, Any]:
    claimed, answer = outcome.claimed, outcome.answer
    status, next_retry_at = _state_after(claimed, verdict)
    return {
        "event_id": claimed.event_id,
        "lease_token": str(claimed.lease_token),
        "trigger": claimed.trigger,
        "event_status": status,
        "next_retry_at": None if next_retry_at is None else next_retry_at.isoformat(),
        "status": AttemptStatus.SUCCESS if outcome.succeeded else AttemptStatus.FAILURE,
        "http_status": outcome.http_status,
        "response_headers": None if answer is None else dict(answer.headers),
        "response_body": None if answer is None else answer.body,
        "error_message": outcome.error,
        "duration_ms": outcome.duration_ms,
        "started_at": outcome.started_at.isoformat(),
    }


def _state_after(claimed: Claimed, verdict: Verdict) -> tuple[EventStatus, datetime | None]:
    match verdict:
        case Delivered():
            return EventStatus.SUCCESS, None
        case RetryAt(at):
            return EventStatus.PENDING, at
        case Dead():
            return EventStatus.DEAD, None
    return claimed.status, claimed.next_retry_at
