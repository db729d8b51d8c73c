"""The index of the history of rates in a span of time"""

from kit.db.migrations.steps import index_beside_traffic

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    index_beside_traffic("ix_rates_taken", "rates", ["currency_code", "taken_at"])
