"""Indexes of the filters of the operator's list: withdrawals by method, address and amount"""

import sqlalchemy as sa

from kit.db.migrations.steps import index_beside_traffic

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    place = ["created_at", "id"]
    index_beside_traffic("ix_withdrawals_method", "withdrawals", ["method_id", *place])
    index_beside_traffic("ix_withdrawals_address", "withdrawals", [sa.text("lower(address)"), *place])
    index_beside_traffic("ix_withdrawals_amount", "withdrawals", ["amount", *place])
