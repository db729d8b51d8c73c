"""Old attempts and their end."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session


@dataclass(frozen=True, slots=True)
class Pruned:
    """One batch: how many attempts went, the last one looked at, and whether older ones may follow it."""

    deleted: int
    last_id: int
    more: bool


# Attempts are numbered as they are recorded, so the oldest stand first and no index on time is needed: the scan is
# bounded even where nothing has to go. What it stepped over before (`after`) it passes, dead or alive.
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


# Nobody waits for the disk for it: what a crash brings back is deleted again.
_UNHURRIED = text("SET LOCAL synchronous_commit = off")


def prune_attempts(tx: Session, *, before: datetime, after: int, limit: int) -> Pruned:
    """Look at the `limit` oldest attempts behind number `after`; delete those begun before `before`.

    Attempts of pending events stay, and so do all events: an event that is gone would be made, and sent, again.
    """
    tx.execute(_UNHURRIED)
    row = tx.execute(_PRUNE, {"before": before, "after": after, "limit": limit}).one()
    return Pruned(**row._asdict())
