"""Indexes of the operator's lists over all merchants, in the order of time"""

from kit.db.migrations.steps import index_beside_traffic

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    index_beside_traffic("ix_withdrawals_all", "withdrawals", ["created_at", "id"])
    index_beside_traffic("ix_withdrawals_all_status", "withdrawals", ["status", "created_at", "id"])
