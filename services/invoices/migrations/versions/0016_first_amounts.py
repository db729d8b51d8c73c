"""Index of adjusted deals by the amount that their customers were told to send, for the search"""

import sqlalchemy as sa

from kit.db.migrations.steps import index_beside_traffic

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_UNIT = "power(CAST(10 AS numeric), currency_decimals)"


def upgrade() -> None:
    index_beside_traffic(
        "ix_deals_first_amount",
        "deals",
        [sa.text(f"(ceil(invoice_amount * (100 + client_percent) * 0.01 * {_UNIT}) / {_UNIT})")],
        where=sa.text("adjusted_amount IS NOT NULL"),
    )
