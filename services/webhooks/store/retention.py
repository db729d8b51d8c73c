"""Old attempts and their deletion."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session


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
    WHERE attempts.id = oldest.id AND oldest.created_at < :before
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
