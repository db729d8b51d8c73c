"""The merchant whose member chose a picture, so that they can be counted"""

import sqlalchemy as sa
from alembic import op

from kit.db.migrations import guards
from kit.db.migrations.steps import index_beside_traffic

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with guards.each_by_itself():
        op.execute("ALTER TABLE logos ADD COLUMN IF NOT EXISTS kept_for uuid")
    index_beside_traffic(
        "ix_logos_kept_for", "logos", ["kept_for", "created_at"], where=sa.text("kept_for IS NOT NULL")
    )
