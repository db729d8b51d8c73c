"""Indexes of a merchant's list of events: all of them, and those that were given up"""

import sqlalchemy as sa

from kit.db.migrations.steps import index_beside_traffic

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    index_beside_traffic("ix_events_merchant", "events", ["merchant_id", "created_at", "id"])
    index_beside_traffic(
        "ix_events_merchant_dead",
        "events",
        ["merchant_id", "created_at", "id"],
        where=sa.text("status = 'dead'"),
    )
