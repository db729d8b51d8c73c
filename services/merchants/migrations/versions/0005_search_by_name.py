"""An index of the words of merchants' names, for the search"""

import sqlalchemy as sa

from kit.db.migrations.steps import index_beside_traffic

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    index_beside_traffic(
        "ix_merchants_words", "merchants", [sa.text("to_tsvector('simple'::regconfig, name)")], using="gin"
    )
