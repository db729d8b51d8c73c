"""Due events by lane: a claim reads no other lane's backlog"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index(
        "ix_events_lanes",
        "events",
        ["merchant_id", "destination", "next_retry_at", "id"],
        postgresql_where=sa.text("status = 'pending'"),
    )
