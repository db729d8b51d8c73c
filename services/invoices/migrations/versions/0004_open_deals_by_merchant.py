"""An index on open deals by merchant and method, for the number of places that one merchant holds"""

import sqlalchemy as sa

from kit.db.migrations.steps import index_beside_traffic

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    index_beside_traffic(
        "ix_deals_open_merchant",
        "deals",
        ["merchant_id", "method_code"],
        where=sa.text("status IN ('pending', 'appeal')"),
    )
