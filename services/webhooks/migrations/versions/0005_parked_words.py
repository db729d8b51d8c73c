"""An index on the content of parked events: each event that takes effect queries it"""

import sqlalchemy as sa

from kit.db.migrations.steps import index_beside_traffic

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    index_beside_traffic("ix_parked_words", "parked", [sa.text("sha256(payload)")])
