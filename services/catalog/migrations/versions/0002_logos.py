"""Logos are stored in the database, not as addresses on other servers"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "logos",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("digest", name=op.f("pk_logos")),
        sa.CheckConstraint("digest ~ '^[0-9a-f]{64}$'", name=op.f("ck_logos_digest")),
        sa.CheckConstraint("octet_length(content) BETWEEN 1 AND 32768", name=op.f("ck_logos_content")),
    )
    op.add_column("payment_methods", sa.Column("logo", sa.Text()))
    op.create_foreign_key(op.f("fk_payment_methods_logo"), "payment_methods", "logos", ["logo"], ["digest"])
