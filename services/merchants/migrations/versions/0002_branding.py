"""The appearance of a merchant's payment page, and the sites that may frame it"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("merchants", sa.Column("colour", sa.Text()))
    op.add_column("merchants", sa.Column("logo_url", sa.Text()))
    op.add_column(
        "merchants",
        sa.Column(
            "frame_origins", sa.ARRAY(sa.Text()), server_default=sa.text("'{}'::text[]"), nullable=False
        ),
    )
    op.create_check_constraint(op.f("ck_merchants_colour"), "merchants", "colour ~ '^#[0-9a-f]{6}$'")
    op.create_check_constraint(op.f("ck_merchants_logo_url"), "merchants", "char_length(logo_url) <= 2048")
