"""The statements that write the results of attempts."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, text

from kit.db import prepared
from kit.db.prepared import Prepared
from services.webhooks.domain import AttemptStatus, Dead, Delivered, EventStatus, RetryAt, Verdict
from services.webhooks.store.stages import Claimed, Outcome, Recorded

MOST_COUNTED: Final = 1_000_000_000
"""No event reaches this number of attempts. A larger count was written by SQL, and the sum of two might overflow."""

# One statement: the event changes and gets its attempt, or neither when the lease was lost. Each has the other, so any
# join gives the same rows; a full join can't be the nested loop that PostgreSQL would choose, expecting a single row.
# Counts that SQL made too large are cut: one sum that is no integer would fail the whole batch.
_RECORD = Prepared(
    "record_outcomes",
    """
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
        auto_attempts = least(auto_attempts, :most_counted) + (outcome.trigger = 'auto')::int,
        manual_attempts = least(manual_attempts, :most_counted) + (outcome.trigger = 'manual')::int,
        last_manual_at = CASE WHEN outcome.trigger = 'manual' THEN outcome.started_at ELSE last_manual_at END,
        locked_at = NULL, locked_by = NULL, lease_token = NULL, lease_until = NULL,
        updated_at = :now
    FROM outcome
    WHERE events.id = outcome.event_id AND events.lease_token = outcome.lease_token
    RETURNING outcome.*, auto_attempts + manual_attempts AS try_number
), attempt AS (
    INSERT INTO attempts (
        event_id, try_number, trigger, status, http_status, response_headers, response_body, error_message,
        duration_ms, created_at
    )
    SELECT event_id, try_number, trigger, status, http_status, response_headers, response_body, error_message,
        duration_ms, started_at
    FROM fenced
    RETURNING id, event_id
)
SELECT attempt.event_id, fenced.lease_token, attempt.id AS attempt_id, fenced.next_retry_at
FROM attempt FULL JOIN fenced ON fenced.event_id = attempt.event_id
""",
    {"outcomes": "json", "now": "timestamptz", "most_counted": "bigint"},
    Recorded,
)


def record(
    connection: Connection, outcomes: Sequence[tuple[Outcome, Verdict]], *, now: datetime
) -> list[Recorded]:
    """Writes outcomes with their verdicts; those that lost their lease are left out of the answer.

    Two outcomes of one event may come together, the later one under a later lease, when the database was away for
    longer than a lease lasts.
    """
    rows = [_outcome_row(outcome, verdict) for outcome, verdict in outcomes]
    values = {"outcomes": json.dumps(rows), "now": now, "most_counted": MOST_COUNTED}
    return prepared.rows(connection, _RECORD, values)


# Event, trigger and time identify the attempt: an event has one lease at a time.
_RECORDED = text("""
SELECT outcome.event_id, outcome.lease_token, attempts.id AS attempt_id, events.next_retry_at
FROM json_to_recordset(:outcomes) AS outcome (
    event_id bigint, lease_token uuid, trigger text, started_at timestamptz
)
JOIN attempts ON attempts.event_id = outcome.event_id AND attempts.trigger = outcome.trigger
    AND attempts.created_at = outcome.started_at
JOIN events ON events.id = outcome.event_id
""")


def recorded_before(connection: Connection, outcomes: Sequence[Outcome]) -> list[Recorded]:
    """Returns the outcomes among these that a `record` has written whose answer was lost."""
    rows = [
        {
            "event_id": each.claimed.event_id,
            "lease_token": str(each.claimed.lease_token),
            "trigger": each.claimed.trigger,
            "started_at": each.started_at.isoformat(),
        }
        for each in outcomes
    ]
    found = connection.execute(_RECORDED, {"outcomes": json.dumps(rows)})
    return [Recorded(*row) for row in found]


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
