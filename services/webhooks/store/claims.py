"""The engine's statements: due lanes, claim, release. Each is one round trip and a transaction of its own."""

import json
import os
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from kit.db import prepared
from kit.db.prepared import Prepared
from services.webhooks.domain import (
    EventStatus,
    EventTerms,
    Trigger,
)
from services.webhooks.store.stages import Claimed, LaneKey, Rooms


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A claim's holder, token and times."""

    token: UUID
    worker: str
    now: datetime
    until: datetime


def worker_name() -> str:
    """Returns the name of a lease's holder: the host and the process."""
    return f"{socket.gethostname()}:{os.getpid()}"


class _NewlyDue(NamedTuple):
    """A lane with new events: whether one is due and not leased, their number, and the time of the newest."""

    merchant_id: UUID
    destination: str
    is_due: bool
    events: int
    newest: datetime


# Lanes in which something became due since an earlier read. It reads the index in order of time, so its cost is the
# number of new events, not of waiting ones. It reads about `most` events: after an outage everything of that time is
# new. It also reads the events that are due at the same time as the last one, because the next read starts after that
# time, and events that are rescheduled together have one time. It reads and counts leased events too.
_DUE_SINCE = Prepared(
    "due_since",
    """
SELECT merchant_id, destination, bool_or(lease_until IS NULL OR lease_until <= :now) AS is_due,
    count(*) AS events, max(next_retry_at) AS newest
FROM (
    SELECT merchant_id, destination, lease_until, next_retry_at
    FROM events
    WHERE status = 'pending' AND next_retry_at > :since AND next_retry_at <= :now
    ORDER BY next_retry_at
    FETCH FIRST (:most) ROWS WITH TIES
) AS new
GROUP BY merchant_id, destination
""",
    {"since": "timestamptz", "most": "bigint", "now": "timestamptz"},
    _NewlyDue,
)

# Lanes in their order, each with whether something is due. It steps through the index from one lane to the next, so
# its cost is the number of lanes, not of the events that wait in them.
_LANES = text("""
WITH RECURSIVE lane AS (
    (
        SELECT merchant_id, destination, 1 AS number
        FROM events
        WHERE status = 'pending' AND (merchant_id, destination) > (:merchant_id, :destination)
        ORDER BY merchant_id, destination
        LIMIT 1
    )
    UNION ALL
    SELECT following.merchant_id, following.destination, lane.number + 1
    FROM lane CROSS JOIN LATERAL (
        SELECT merchant_id, destination
        FROM events
        WHERE status = 'pending' AND (merchant_id, destination) > (lane.merchant_id, lane.destination)
        ORDER BY merchant_id, destination
        LIMIT 1
    ) AS following
    WHERE lane.number < :most
)
SELECT lane.merchant_id, lane.destination, oldest.id IS NOT NULL AS is_due
FROM lane LEFT JOIN LATERAL (
    SELECT id
    FROM events
    WHERE merchant_id = lane.merchant_id AND destination = lane.destination
      AND status = 'pending' AND next_retry_at <= :now AND (lease_until IS NULL OR lease_until <= :now)
    ORDER BY next_retry_at, id
    LIMIT 1
) AS oldest ON true
""")

BEFORE_ALL: Final = LaneKey(UUID(int=0), "")


@dataclass(frozen=True, slots=True)
class NewlyDueLanes:
    """The lanes with a new event that is due and not leased.

    read_to  the time of the last event that was read; None when all were read
    """

    due: list[LaneKey]
    read_to: datetime | None


@dataclass(frozen=True, slots=True)
class DueLanes:
    """The lanes with an event that is due and not leased; `last_lane` is where the next read continues."""

    due: list[LaneKey]
    last_lane: LaneKey


def lanes_due_since(connection: Connection, since: datetime, *, most: int, now: datetime) -> NewlyDueLanes:
    """Reads the first `most` events that became due after `since`, and those due at the same time as the last one."""
    seen = prepared.rows(connection, _DUE_SINCE, {"since": since, "most": most, "now": now})
    due = [LaneKey(row.merchant_id, row.destination) for row in seen if row.is_due]
    read_all = sum(row.events for row in seen) < most
    return NewlyDueLanes(due, None if read_all else max(row.newest for row in seen))


def lanes_due_after(connection: Connection, lane: LaneKey, *, most: int, now: datetime) -> DueLanes:
    """Reads the next `most` lanes with pending events, in their order; after the last, it starts with the first."""
    seen = connection.execute(_LANES, lane._asdict() | {"most": most, "now": now}).all()
    due = [LaneKey(row.merchant_id, row.destination) for row in seen if row.is_due]
    return DueLanes(
        due, LaneKey(seen[-1].merchant_id, seen[-1].destination) if len(seen) == most else BEFORE_ALL
    )


# Each lane is read separately, from its oldest event, and only as far as there is room: other lanes' backlogs cost
# nothing. The rows are locked, so that engines running side by side take different events. A lease that ran out counts
# as none: that rescues the events of a dead worker. The order by id too leaves the planner only the lanes' own index.
# The array keeps it from a join, for which it would expect thousands of rows and read the whole table.
_CLAIM_SQL: Final = """
UPDATE events
SET locked_at = :now, locked_by = :worker, lease_token = :token, lease_until = :until, updated_at = :now
WHERE id = ANY (ARRAY(
    SELECT of_merchant.id
    FROM json_to_recordset(:rooms) AS merchant (id uuid, room int, lanes json)
    CROSS JOIN LATERAL (
        SELECT of_lane.id
        FROM json_to_recordset(merchant.lanes) AS lane (destination text, room int)
        CROSS JOIN LATERAL (
            SELECT id
            FROM events
            WHERE merchant_id = merchant.id AND destination = lane.destination
              AND status = 'pending' AND next_retry_at <= :now AND (lease_until IS NULL OR lease_until <= :now)
            ORDER BY next_retry_at, id
            LIMIT lane.room
            FOR UPDATE SKIP LOCKED
        ) AS of_lane
        LIMIT merchant.room
    ) AS of_merchant
    LIMIT :total
))
"""
# This query claims one event, whose row this transaction has locked.
_CLAIM_ONE_SQL: Final = """
UPDATE events
SET locked_at = :now, locked_by = :worker, lease_token = :token, lease_until = :until, updated_at = :now
WHERE id = :id
"""
# The columns that `_claimed` takes, those of `EventTerms` last.
_RETURNING: Final = """
RETURNING id, status, next_retry_at, auto_attempts, request_id, traceparent, coalesce(seal, ''),
    payload_event_id, invoice_id, merchant_id, key_id, event_type, callback_url, destination, payload
"""
_CLAIM: Final = Prepared(
    "claim_due",
    _CLAIM_SQL + _RETURNING,
    {
        "now": "timestamptz",
        "worker": "text",
        "token": "uuid",
        "until": "timestamptz",
        "rooms": "json",
        "total": "bigint",
    },
    lambda *columns: columns,
)
_CLAIM_ONE: Final = text(_CLAIM_ONE_SQL + _RETURNING)


def claim_due(connection: Connection, lease: Lease, rooms: Rooms) -> list[Claimed]:
    """Claims due events without a lease, oldest first in each lane, within the bounds in `rooms`."""
    values = asdict(lease) | {"rooms": _rooms_parameter(rooms), "total": rooms.total}
    rows = prepared.rows(connection, _CLAIM, values)
    claimed = [_claimed(lease, Trigger.AUTO, row) for row in rows]
    return sorted(claimed, key=lambda each: (each.next_retry_at, each.event_id))


def claim_for_resend(tx: Session, event_id: int, lease: Lease) -> Claimed:
    """Puts the lease on an event whose row this transaction has locked."""
    row = tx.execute(_CLAIM_ONE, asdict(lease) | {"id": event_id}).one()
    return _claimed(lease, Trigger.MANUAL, row)


def _rooms_parameter(rooms: Rooms) -> str:
    return json.dumps(
        [
            {
                "id": str(id),
                "room": rooms.merchants[id],
                "lanes": [{"destination": key.destination, "room": room} for key, room in lanes.items()],
            }
            for id, lanes in rooms.by_merchant().items()
        ]
    )


def _claimed(lease: Lease, trigger: Trigger, row: Sequence[Any]) -> Claimed:
    """Makes the value of the columns of `_RETURNING`."""
    event_id, status, next_retry_at, auto_attempts, request_id, traceparent, seal, *terms = row
    terms[-1] = bytes(terms[-1])  # the driver returns a memoryview
    return Claimed(
        event_id=event_id,
        lease_token=lease.token,
        lease_until=lease.until,
        trigger=trigger,
        terms=EventTerms(*terms),
        status=EventStatus(status),
        next_retry_at=next_retry_at,
        auto_attempts=auto_attempts,
        seal=seal,
        request_id=request_id or "",
        traceparent=traceparent or "",
    )


_NEXT_DUE = Prepared[datetime | None](
    "next_due",
    "SELECT min(next_retry_at) FROM events WHERE status = 'pending' AND next_retry_at > :now",
    {"now": "timestamptz"},
    lambda at: at,
)


def next_due_at(connection: Connection, *, now: datetime) -> datetime | None:
    """Returns the time at which the next event becomes due; None when no event waits for its time."""
    return prepared.one_or_none(connection, _NEXT_DUE, {"now": now})


_RELEASE = text("""
UPDATE events
SET locked_at = NULL, locked_by = NULL, lease_token = NULL, lease_until = NULL
FROM json_to_recordset(:claims) AS claim (event_id bigint, lease_token uuid)
WHERE events.id = claim.event_id AND events.lease_token = claim.lease_token
""")


def release(connection: Connection, claims: Sequence[Claimed]) -> None:
    """Gives events back unsent: they are due again at once."""
    rows = [{"event_id": each.event_id, "lease_token": str(each.lease_token)} for each in claims]
    connection.execute(_RELEASE, {"claims": json.dumps(rows)})
