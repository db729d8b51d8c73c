"""Months of attempts go in their order, and holes among them are filled"""

from kit.db.migrations import months

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

# As in 0010, whose functions these replace.
IN_USE = """
SELECT FROM events
WHERE status = 'pending' AND created_at < %2$L AND EXISTS (SELECT FROM %1$I WHERE event_id = events.id)
"""


def upgrade() -> None:
    months.make_functions("attempts", in_use=IN_USE, youngest="1 day")
