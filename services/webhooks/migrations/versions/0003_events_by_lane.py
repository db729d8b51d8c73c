"""An index on due events by lane: a claim reads no other lane's backlog"""

import sqlalchemy as sa

from kit.db.migrations.steps import index_beside_traffic

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    index_beside_traffic(
        "ix_events_lanes",
        "events",
        ["merchant_id", "destination", "next_retry_at", "id"],
        where=sa.text("status = 'pending'"),
    )
