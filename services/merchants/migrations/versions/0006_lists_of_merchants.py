"""Indexes for the filters of the list of merchants"""

import sqlalchemy as sa

from kit.db.migrations.steps import index_beside_traffic

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    index_beside_traffic("ix_merchants_banned", "merchants", ["id"], where=sa.text("banned_at IS NOT NULL"))
    index_beside_traffic(
        "ix_merchants_inactive",
        "merchants",
        ["id"],
        where=sa.text("activated_at IS NULL AND banned_at IS NULL"),
    )
    index_beside_traffic("ix_merchants_category_code", "merchants", ["category_code", "id"])
    index_beside_traffic("ix_merchants_created_at", "merchants", ["created_at"])
    index_beside_traffic("ix_owners_blocked", "owners", ["id"], where=sa.text("blocked_at IS NOT NULL"))
