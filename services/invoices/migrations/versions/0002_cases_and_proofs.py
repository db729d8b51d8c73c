"""Late money that customers report, and the pictures that they send"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "cases",
        sa.Column("number", sa.BigInteger(), sa.Identity(always=True, start=1001), nullable=False),
        sa.Column("invoice_id", sa.Uuid(), nullable=False),
        sa.Column("merchant_id", sa.Uuid(), nullable=False),
        sa.Column("deal_id", sa.Uuid(), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("resolved_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.CheckConstraint("(resolved_at IS NULL) = (outcome IS NULL)", name=op.f("ck_cases_outcome")),
        sa.CheckConstraint("(resolved_at IS NULL) = (actor IS NULL)", name=op.f("ck_cases_actor")),
        sa.ForeignKeyConstraint(["invoice_id"], ["invoices.id"], name=op.f("fk_cases_invoice_id")),
        sa.ForeignKeyConstraint(["deal_id"], ["deals.id"], name=op.f("fk_cases_deal_id")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_cases")),
        sa.UniqueConstraint("invoice_id", name=op.f("uq_cases_invoice_id")),
    )
    op.create_index(
        "ix_cases_open", "cases", ["number"], unique=False, postgresql_where=sa.text("resolved_at IS NULL")
    )
    op.create_table(
        "proofs",
        sa.Column("deal_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind IN ('appeal', 'case')", name=op.f("ck_proofs_kind")),
        sa.CheckConstraint("octet_length(content) BETWEEN 1 AND 5242880", name=op.f("ck_proofs_content")),
        sa.ForeignKeyConstraint(["deal_id"], ["deals.id"], name=op.f("fk_proofs_deal_id")),
        sa.PrimaryKeyConstraint("deal_id", "kind", name=op.f("pk_proofs")),
    )
