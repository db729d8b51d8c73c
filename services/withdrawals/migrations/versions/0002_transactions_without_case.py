"""Finding the withdrawal that a transaction has paid, however its hash is written"""

import sqlalchemy as sa

from kit.db.migrations.steps import index_beside_traffic

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    index_beside_traffic(
        "ix_withdrawals_transaction", "withdrawals", ["network", sa.text("lower(external_tx_id)")]
    )
