"""The signature of a parked event, and the id that an unproven one claims"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("parked", sa.Column("signature", sa.Text()))
    op.add_column("parked", sa.Column("claimed_id", sa.Uuid()))
