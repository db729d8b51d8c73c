"""Tables of history that are divided by month (kit.db.migrations.months): the months ahead, and the old ones.

A service has one `Months` for each such table. Its worker calls `add` and `drop` from time to time.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, text

AHEAD: Final = 3
"""Months after this one that have a partition before they begin."""

_ADD: Final = text("SELECT add_months(:head, :ahead)")
_END_OF_BEFORE: Final = text("SELECT until FROM months_of(:head) WHERE name = :head || '_before'")
# The first month from this one on that has no partition ends the count. `add_months` makes no thirteenth.
_LEFT: Final = text("""
SELECT greatest(0, coalesce(min(number), 13) - 1) FROM generate_series(0, 12) AS number
CROSS JOIN LATERAL (
  SELECT (date_trunc('month', :now AT TIME ZONE 'UTC') + (number + 1) * interval '1 month') AT TIME ZONE 'UTC' AS ends
) AS month
WHERE NOT EXISTS (
  SELECT FROM months_of(:head) AS there
  WHERE there.until = month.ends OR there.name = :head || '_before' AND there.until > month.ends
)
""")


class Months:
    """The months of one table; `head` is its name."""

    def __init__(self, head: str) -> None:
        self._head = {"head": head}
        self._drop = text(f"SELECT name FROM drop_old_months_of_{head}(:before) AS name")  # noqa: S608  a constant

    def add(self, connection: Connection) -> int:
        """Makes the partitions of the next months, and of earlier ones, that have none; returns their number. 0 also
        while the table's locks can't be had: call it again later.
        """
        return int(connection.scalar(_ADD, self._head | {"ahead": AHEAD}) or 0)

    def drop(self, connection: Connection, *, before: datetime) -> Sequence[str]:
        """Drops the partitions that ended before this time, up to the first that may not go; returns their names. As
        `add`, it gives up where it would have to wait.
        """
        return connection.scalars(self._drop, {"before": before}).all()

    def end_of_before(self, connection: Connection) -> datetime | None:
        """Returns the time until which rows are in the partition from before; None once it is dropped."""
        end: datetime | None = connection.scalar(_END_OF_BEFORE, self._head)
        return end

    def left(self, connection: Connection, *, now: datetime) -> int:
        """Returns the number of whole months after this one that have a partition, up to the first that has none; 0
        also when this month has none.
        """
        return int(connection.scalar(_LEFT, self._head | {"now": now}) or 0)
