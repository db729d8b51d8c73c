"""The request that led to an event, and its trace"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("events", sa.Column("request_id", sa.Text()))
    op.add_column("events", sa.Column("traceparent", sa.Text()))
