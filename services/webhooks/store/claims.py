"""The engine's statements: claim, release, record. Each is one round trip and its own transaction."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from services.webhooks.delivery.lanes import LANE, MERCHANT, Rooms
from services.webhooks.delivery.stages import Claimed, Outcome, Recorded
from services.webhooks.domain import AttemptStatus, Dead, Delivered, EventStatus, RetryAt, Trigger, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """Who claims, under which token, until when."""

    token: UUID
    worker: str
    now: datetime
    until: datetime


# Lanes and merchants without room: passed over while the index is read, whatever their backlog.
_OPEN = """
      (merchant_id, destination) NOT IN (
          SELECT merchant_id, destination
          FROM json_to_recordset(:lanes) AS lane (merchant_id uuid, destination text, room int)
          WHERE room = 0
      )
      AND merchant_id NOT IN (
          SELECT merchant_id FROM json_to_recordset(:merchants) AS one (merchant_id uuid, room int) WHERE room = 0
      )
"""

# The scan locks what it reads, so that engines running side by side take different events; rows beyond a lane's or a
# merchant's room are let go when the statement ends. A lease that ran out counts as none: that is the rescue.
_CLAIM = text(f"""
WITH due AS MATERIALIZED (
    SELECT id, merchant_id, destination, next_retry_at
    FROM events
    WHERE status = 'pending'
      AND next_retry_at <= :now
      AND (lease_until IS NULL OR lease_until <= :now)
      AND {_OPEN}
    ORDER BY next_retry_at
    LIMIT :limit
    FOR UPDATE SKIP LOCKED
), placed AS (
    SELECT id,
        row_number() OVER (PARTITION BY merchant_id, destination ORDER BY next_retry_at) AS place_in_lane,
        row_number() OVER (PARTITION BY merchant_id ORDER BY next_retry_at) AS place_of_merchant,
        merchant_id, destination
    FROM due
), picked AS (
    SELECT id
    FROM placed
    LEFT JOIN json_to_recordset(:lanes) AS lane (merchant_id uuid, destination text, room int)
        USING (merchant_id, destination)
    LEFT JOIN json_to_recordset(:merchants) AS one (merchant_id uuid, room int) USING (merchant_id)
    WHERE place_in_lane <= coalesce(lane.room, :lane_room)
      AND place_of_merchant <= coalesce(one.room, :merchant_room)
)
UPDATE events
SET locked_at = :now, locked_by = :worker, lease_token = :token, lease_until = :until, updated_at = :now
FROM picked
WHERE events.id = picked.id
RETURNING events.id, payload_event_id, merchant_id, key_id, callback_url, destination, payload, status,
    next_retry_at, auto_attempts
""")  # noqa: S608  its parts are constants of this module


def claim_due(connection: Connection, lease: Lease, rooms: Rooms, *, limit: int) -> list[Claimed]:
    """At most `limit` due events, oldest first, and of each lane and merchant at most its room.

    Empty only when nothing is due that has room and that nobody else holds.
    """
    rows = connection.execute(
        _CLAIM,
        {
            **_room_parameters(rooms),
            "lane_room": LANE.first,
            "merchant_room": MERCHANT.first,
            "limit": min(limit, rooms.total),
            "token": lease.token,
            "worker": lease.worker,
            "now": lease.now,
            "until": lease.until,
        },
    )
    claimed = [claimed_from_row(row, lease, Trigger.AUTO) for row in rows]
    return sorted(claimed, key=lambda each: (each.next_retry_at, each.event_id))


def _room_parameters(rooms: Rooms) -> dict[str, str]:
    lanes = [
        {"merchant_id": str(key.merchant_id), "destination": key.destination, "room": room}
        for key, room in rooms.lanes.items()
    ]
    merchants = [{"merchant_id": str(id), "room": room} for id, room in rooms.merchants.items()]
    return {"lanes": json.dumps(lanes), "merchants": json.dumps(merchants)}


def claimed_from_row(row: Any, lease: Lease, trigger: Trigger) -> Claimed:
    """From a row of the claim, or from an `Event`."""
    return Claimed(
        event_id=row.id,
        lease_token=lease.token,
        lease_until=lease.until,
        trigger=trigger,
        payload_event_id=row.payload_event_id,
        merchant_id=row.merchant_id,
        key_id=row.key_id,
        callback_url=row.callback_url,
        destination=row.destination,
        payload=bytes(row.payload),
        status=EventStatus(row.status),
        next_retry_at=row.next_retry_at,
        auto_attempts=row.auto_attempts,
    )


_NEXT_DUE = text(f"""
SELECT min(greatest(next_retry_at, lease_until))
FROM events
WHERE status = 'pending' AND next_retry_at <= :horizon AND {_OPEN}
""")  # noqa: S608


def next_due_at(connection: Connection, rooms: Rooms, *, horizon: datetime) -> datetime | None:
    """When the next event that has room is due, leases counted; None when not before `horizon`."""
    at: datetime | None = connection.scalar(_NEXT_DUE, {"horizon": horizon, **_room_parameters(rooms)})
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
    RETURNING events.id, outcome.lease_token, auto_attempts + manual_attempts AS try_number, events.next_retry_at
), attempt AS (
    INSERT INTO attempts (
        event_id, try_number, trigger, status, http_status, response_headers, response_body, error_message,
        duration_ms, created_at
    )
    SELECT fenced.id, try_number, trigger, status, http_status, response_headers, response_body, error_message,
        duration_ms, started_at
    FROM fenced JOIN outcome ON outcome.event_id = fenced.id AND outcome.lease_token = fenced.lease_token
    RETURNING id, event_id
)
SELECT attempt.event_id, fenced.lease_token, attempt.id AS attempt_id, fenced.next_retry_at
FROM attempt JOIN fenced ON fenced.id = attempt.event_id
""")


def record(
    connection: Connection, outcomes: Sequence[tuple[Outcome, Verdict]], *, now: datetime
) -> list[Recorded]:
    """Write outcomes with their verdicts; those whose lease is another's by now are left out of the answer.

    Two of one event may come together, the later one under a later lease: after the database was away for longer than
    a lease lasts.
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
