"""Invoices, deals with their history, requisites, switches, and the outbox"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "bus_state",
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("stream_created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("stream", name=op.f("pk_bus_state")),
    )
    op.create_table(
        "invoices",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("merchant_id", sa.Uuid(), nullable=False),
        sa.Column("key_id", sa.Uuid(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("amount", sa.Numeric(precision=20, scale=2), nullable=False),
        sa.Column("currency_code", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("customer_id", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=True),
        sa.Column("callback_url", sa.Text(), nullable=True),
        sa.Column("success_url", sa.Text(), nullable=True),
        sa.Column("fail_url", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("deal_id", sa.Uuid(), nullable=True),
        sa.Column("event_id", sa.Uuid(), nullable=True),
        sa.CheckConstraint(
            "(status = 'pending') = (finished_at IS NULL)", name=op.f("ck_invoices_finished_at")
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'success', 'fail', 'expired', 'canceled')", name=op.f("ck_invoices_status")
        ),
        sa.CheckConstraint("(finished_at IS NULL) = (event_id IS NULL)", name=op.f("ck_invoices_event_id")),
        sa.CheckConstraint("amount > 0", name=op.f("ck_invoices_amount")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_invoices")),
        sa.UniqueConstraint("merchant_id", "external_id", name=op.f("uq_invoices_merchant_id_external_id")),
    )
    op.create_index(
        "ix_invoices_customer", "invoices", ["merchant_id", "customer_id", "created_at"], unique=False
    )
    op.create_index(
        "ix_invoices_finished",
        "invoices",
        ["id"],
        unique=False,
        postgresql_where=sa.text("status <> 'pending'"),
    )
    op.create_index(
        "ix_invoices_list",
        "invoices",
        ["merchant_id", "created_at", "id"],
        unique=False,
        postgresql_include=["currency_code"],
    )
    op.create_index(
        "ix_invoices_list_status",
        "invoices",
        ["merchant_id", "status", "created_at", "id"],
        unique=False,
        postgresql_include=["currency_code"],
    )
    op.create_index(
        "ix_invoices_waiting",
        "invoices",
        ["expires_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending' AND deal_id IS NULL"),
    )
    op.create_index(
        "uq_invoices_pending_customer",
        "invoices",
        ["merchant_id", "customer_id"],
        unique=True,
        postgresql_where=sa.text("finished_at IS NULL"),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_outbox")),
    )
    op.create_index(
        "ix_outbox_published",
        "outbox",
        ["published_at"],
        unique=False,
        postgresql_where=sa.text("published_at IS NOT NULL"),
    )
    op.create_index(
        "ix_outbox_unpublished",
        "outbox",
        ["id"],
        unique=False,
        postgresql_where=sa.text("published_at IS NULL"),
    )
    op.create_table(
        "requisites",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("method_code", sa.Text(), nullable=False),
        sa.Column("holder", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("bank", sa.Text(), nullable=True),
        sa.Column("max_deals", sa.Integer(), nullable=False),
        sa.Column("open_deals", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("max_deals > 0", name=op.f("ck_requisites_max_deals")),
        sa.CheckConstraint("open_deals BETWEEN 0 AND max_deals", name=op.f("ck_requisites_open_deals")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_requisites")),
    )
    op.create_index("ix_requisites_method", "requisites", ["method_code", "created_at"], unique=False)
    op.create_table(
        "switches",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_switches")),
    )
    op.create_table(
        "deals",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("invoice_id", sa.Uuid(), nullable=False),
        sa.Column("merchant_id", sa.Uuid(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("sub_status", sa.Text(), nullable=False),
        sa.Column("method_code", sa.Text(), nullable=False),
        sa.Column("method_name", sa.Text(), nullable=False),
        sa.Column("currency_code", sa.Text(), nullable=False),
        sa.Column("currency_decimals", sa.Integer(), nullable=False),
        sa.Column("invoice_amount", sa.Numeric(precision=20, scale=2), nullable=False),
        sa.Column("amount_fiat", sa.Numeric(precision=22, scale=2), nullable=False),
        sa.Column("conversion_rate", sa.Numeric(precision=20, scale=2), nullable=False),
        sa.Column("client_percent", sa.Numeric(precision=5, scale=2), nullable=False),
        sa.Column("merchant_percent", sa.Numeric(precision=5, scale=2), nullable=False),
        sa.Column("merchant_usdt", sa.Numeric(precision=38, scale=6), nullable=True),
        sa.Column("adjusted_amount", sa.Numeric(precision=20, scale=2), nullable=True),
        sa.Column("requisite_id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("mark_paid_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("confirm_before", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(status = 'completed') = (merchant_usdt IS NOT NULL)", name=op.f("ck_deals_merchant_usdt")
        ),
        sa.CheckConstraint(
            "(status IN ('pending', 'appeal')) = (finished_at IS NULL)", name=op.f("ck_deals_finished_at")
        ),
        sa.CheckConstraint(
            "(sub_status = 'completed_with_adjustment') = (adjusted_amount IS NOT NULL)",
            name=op.f("ck_deals_adjustment"),
        ),
        sa.CheckConstraint(
            "status IN ('pending', 'completed', 'canceled', 'failed', 'appeal', 'expired')",
            name=op.f("ck_deals_status"),
        ),
        sa.CheckConstraint(
            "(mark_paid_at IS NULL) = (confirm_before IS NULL)", name=op.f("ck_deals_confirm_before")
        ),
        sa.CheckConstraint(
            "adjusted_amount > 0 AND adjusted_amount < invoice_amount", name=op.f("ck_deals_adjusted_amount")
        ),
        sa.CheckConstraint("amount_fiat > 0", name=op.f("ck_deals_amount_fiat")),
        sa.CheckConstraint("conversion_rate > 0", name=op.f("ck_deals_conversion_rate")),
        sa.ForeignKeyConstraint(["invoice_id"], ["invoices.id"], name=op.f("fk_deals_invoice_id")),
        sa.ForeignKeyConstraint(["requisite_id"], ["requisites.id"], name=op.f("fk_deals_requisite_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deals")),
    )
    op.create_index("ix_deals_invoice", "deals", ["invoice_id", "created_at"], unique=False)
    op.create_index("ix_deals_list", "deals", ["created_at", "id"], unique=False)
    op.create_index("ix_deals_list_status", "deals", ["status", "created_at", "id"], unique=False)
    op.create_index(
        "ix_deals_marked",
        "deals",
        ["confirm_before"],
        unique=False,
        postgresql_where=sa.text("sub_status = 'awaiting_confirmation'"),
    )
    op.create_index(
        "ix_deals_unpaid",
        "deals",
        ["expires_at"],
        unique=False,
        postgresql_where=sa.text("sub_status = 'awaiting_payment'"),
    )
    op.create_index(
        "uq_deals_open_amount",
        "deals",
        ["requisite_id", "amount_fiat"],
        unique=True,
        postgresql_where=sa.text("status IN ('pending', 'appeal')"),
    )
    op.create_index(
        "uq_deals_open_invoice",
        "deals",
        ["invoice_id"],
        unique=True,
        postgresql_where=sa.text("status IN ('pending', 'appeal')"),
    )
    op.create_table(
        "deal_transitions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("deal_id", sa.Uuid(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("sub_status", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["deal_id"], ["deals.id"], name=op.f("fk_deal_transitions_deal_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deal_transitions")),
    )
    op.create_index("ix_deal_transitions_deal", "deal_transitions", ["deal_id", "id"], unique=False)

    # History is append-only. The role owns the table, so it has to revoke these rights itself.
    op.execute("REVOKE UPDATE, DELETE, TRUNCATE ON deal_transitions FROM CURRENT_USER")
