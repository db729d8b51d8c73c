"""Indexes of a merchant's statement: the transfers of each account in the order of time"""

import sqlalchemy as sa

from kit.db.migrations.steps import index_beside_traffic

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    place = ["created_at", "id"]
    index_beside_traffic("ix_transfers_credit", "transfers", ["credit_account", *place], include=["amount"])
    index_beside_traffic(
        "ix_transfers_debit",
        "transfers",
        ["debit_account", *place],
        include=["amount"],
        where=sa.text("reference >= 'withdrawal:'"),
    )
