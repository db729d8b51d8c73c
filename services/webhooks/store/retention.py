"""Old attempts: whole months of them are dropped, others are deleted in small batches."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.orm import Session

from kit.db.months import Months

_MONTHS: Final = Months("attempts")


@dataclass(frozen=True, slots=True)
class Pruned:
    """One batch: the number of deleted attempts, the last one read, and whether older ones may follow it."""

    deleted: int
    last_id: int
    more: bool


# Attempts are numbered as they are recorded, so the oldest have the lowest ids and no index on time is needed. The scan
# is bounded even where nothing is deleted: it starts after the rows that an earlier batch has passed (`after`).
_PRUNE = text("""
WITH oldest AS MATERIALIZED (
    SELECT id, event_id, created_at FROM attempts WHERE id > :after ORDER BY id LIMIT :limit
), pruned AS (
    DELETE FROM attempts
    USING oldest, events
    WHERE attempts.id = oldest.id AND attempts.created_at = oldest.created_at AND oldest.created_at < :before
      AND events.id = oldest.event_id AND events.status <> 'pending'
    RETURNING attempts.id
)
SELECT (SELECT count(*) FROM pruned) AS deleted,
       coalesce(max(id), :after) AS last_id,
       count(*) = :limit AND bool_and(created_at < :before) AS more
FROM oldest
""")


# The commit need not wait for the disk: rows that come back after a crash are deleted again.
_UNHURRIED = text("SET LOCAL synchronous_commit = off")


def prune_attempts(tx: Session, *, before: datetime, after: int, limit: int) -> Pruned:
    """Reads the `limit` oldest attempts after number `after`; deletes those begun before `before`.

    Attempts of pending events stay, and so do all events: a deleted event would be made, and sent, again.
    """
    tx.execute(_UNHURRIED)
    return Pruned(*tx.execute(_PRUNE, {"before": before, "after": after, "limit": limit}).one())


@dataclass(frozen=True, slots=True)
class Turned:
    """The change of months: partitions made for months to come, and those of old months that were dropped.

    rows_until  attempts from before this time are deleted row by row; None: none are
    """

    made: int
    dropped: Sequence[str]
    rows_until: datetime | None


def turn_months(connection: Connection, *, before: datetime | None) -> Turned:
    """Makes the partitions of the next months, and drops those that ended before `before`; None drops none.

    The attempts until the end of the first month are in one partition. Until that is old enough its old rows are
    deleted one by one.
    """
    made = _MONTHS.add(connection)
    if before is None:
        return Turned(made, (), None)
    dropped = _MONTHS.drop(connection, before=before)
    end = _MONTHS.end_of_before(connection)
    return Turned(made, dropped, None if end is None else min(before, end))


def months_left(connection: Connection, *, now: datetime) -> int:
    """Returns the number of months after this one that have a partition."""
    return _MONTHS.left(connection, now=now)
