"""Attempts by month: old ones go with their partition, not row by row"""

from kit.db.migrations import months

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

# Attempts of a pending event stay. Few events are pending for that long.
IN_USE = """
SELECT FROM events
WHERE status = 'pending' AND created_at < %2$L AND EXISTS (SELECT FROM %1$I WHERE event_id = events.id)
"""


def upgrade() -> None:
    months.divide("attempts", "created_at", in_use=IN_USE, youngest="1 day", ahead=3)
