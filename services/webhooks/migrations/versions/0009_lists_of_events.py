"""Indexes of the operator's list of events, in the order of time"""

import sqlalchemy as sa

from kit.db.migrations.steps import index_beside_traffic

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    index_beside_traffic("ix_events_list", "events", ["created_at", "id"])
    index_beside_traffic(
        "ix_events_list_unsent",
        "events",
        ["status", "created_at", "id"],
        where=sa.text("status <> 'success'"),
    )
