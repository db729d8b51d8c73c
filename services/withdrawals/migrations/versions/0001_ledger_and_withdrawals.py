"""ledger, withdrawal methods and withdrawals"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"

MOVE_BALANCES = """
CREATE FUNCTION move_balances() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- The smaller id first, always: two transfers in opposite directions would otherwise wait for each other.
  PERFORM FROM accounts
    WHERE id IN (NEW.debit_account, NEW.credit_account) AND balance IS NOT NULL
    ORDER BY id FOR NO KEY UPDATE;
  UPDATE accounts SET balance = balance - NEW.amount WHERE id = NEW.debit_account AND balance IS NOT NULL;
  UPDATE accounts SET balance = balance + NEW.amount WHERE id = NEW.credit_account AND balance IS NOT NULL;
  RETURN NULL;
END $$;

CREATE TRIGGER transfers_move_balances AFTER INSERT ON transfers
  FOR EACH ROW EXECUTE FUNCTION move_balances();
"""

# Two guards: the grants stop the service, the triggers also stop a superuser's mistake.
APPEND_ONLY = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% of % is refused: the ledger is append-only, correct it with a further transfer',
    TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER transfers_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON transfers
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE, TRUNCATE ON transfers FROM CURRENT_USER;

-- Inside move_balances the depth is above zero; a balance moves in no other way.
CREATE TRIGGER balances_move_by_transfer BEFORE UPDATE ON accounts
  FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER accounts_stay BEFORE DELETE OR TRUNCATE ON accounts
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER accounts_open_empty BEFORE INSERT ON accounts
  FOR EACH ROW WHEN (NEW.balance <> 0) EXECUTE FUNCTION refuse_change();
"""

METHODS = [
    # id, code, network, name, fee, least amount, memo
    (1, "USDT-TRC20", "TRC20", "USDT on Tron", "1.000000", "5.000000", False),
    (2, "USDT-ERC20", "ERC20", "USDT on Ethereum", "5.000000", "20.000000", False),
    (3, "USDT-TON", "TON", "USDT on TON", "0.500000", "2.000000", True),
    (4, "USDT-BEP20", "BEP20", "USDT on BNB Smart Chain", "0.500000", "5.000000", False),
    (5, "USDT-POLYGON", "POLYGON", "USDT on Polygon", "0.500000", "5.000000", False),
]


def upgrade() -> None:
    _create_ledger()
    _create_withdrawals()
    _create_inbox()


def downgrade() -> None:
    for table in ("parked", "inbox", "withdrawals", "withdrawal_methods", "transfers", "accounts"):
        op.drop_table(table)
    op.execute("DROP FUNCTION move_balances; DROP FUNCTION refuse_change;")


def _create_ledger() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", sa.Integer(), sa.Identity(always=True), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("merchant_id", sa.Uuid(), nullable=True),
        sa.Column("balance", sa.Numeric(38, 6), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_accounts"),
        sa.UniqueConstraint(
            "merchant_id", "kind", name="uq_accounts_merchant_id_kind", postgresql_nulls_not_distinct=True
        ),
        sa.CheckConstraint(
            "kind IN ('merchant_available', 'merchant_reserved', 'settlement', 'paid_out', 'fees')",
            name=op.f("ck_accounts_kind"),
        ),
        sa.CheckConstraint(
            "(kind IN ('merchant_available', 'merchant_reserved')) = (merchant_id IS NOT NULL)",
            name=op.f("ck_accounts_merchant_id"),
        ),
        sa.CheckConstraint("(merchant_id IS NULL) = (balance IS NULL)", name=op.f("ck_accounts_balance")),
        sa.CheckConstraint("balance >= 0", name=op.f("ck_accounts_balance_not_negative")),
    )
    op.create_table(
        "transfers",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("reference", sa.Text(collation="C"), nullable=False),
        sa.Column("debit_account", sa.Integer(), nullable=False),
        sa.Column("credit_account", sa.Integer(), nullable=False),
        sa.Column("amount", sa.Numeric(38, 6), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_transfers"),
        sa.UniqueConstraint("reference", name="uq_transfers_reference"),
        sa.ForeignKeyConstraint(["debit_account"], ["accounts.id"], name="fk_transfers_debit_account"),
        sa.ForeignKeyConstraint(["credit_account"], ["accounts.id"], name="fk_transfers_credit_account"),
        sa.CheckConstraint("amount > 0", name=op.f("ck_transfers_amount")),
        sa.CheckConstraint("debit_account <> credit_account", name=op.f("ck_transfers_accounts")),
        sa.CheckConstraint(
            f"reference ~ '^(invoice:{UUID}|withdrawal:{UUID}:(reserve|pay|fee|release))$'",
            name=op.f("ck_transfers_reference"),
        ),
    )
    op.execute("INSERT INTO accounts (kind) VALUES ('settlement'), ('paid_out'), ('fees')")
    op.execute(MOVE_BALANCES)
    op.execute(APPEND_ONLY)


def _create_withdrawals() -> None:
    methods = op.create_table(
        "withdrawal_methods",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("network", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("network_fee", sa.Numeric(38, 6), nullable=False),
        sa.Column("min_amount", sa.Numeric(38, 6), nullable=False),
        sa.Column("memo_allowed", sa.Boolean(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_withdrawal_methods"),
        sa.UniqueConstraint("code", name="uq_withdrawal_methods_code"),
        sa.CheckConstraint(
            "network IN ('BEP20', 'ERC20', 'POLYGON', 'TON', 'TRC20')",
            name=op.f("ck_withdrawal_methods_network"),
        ),
        sa.CheckConstraint(
            "network_fee >= 0 AND min_amount > network_fee", name=op.f("ck_withdrawal_methods_min_amount")
        ),
    )
    columns = ("id", "code", "network", "name", "network_fee", "min_amount", "memo_allowed")
    op.bulk_insert(methods, [dict(zip(columns, row, strict=True)) | {"enabled": True} for row in METHODS])
    op.create_table(
        "withdrawals",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("merchant_id", sa.Uuid(), nullable=False),
        sa.Column("request_key", sa.Uuid(), nullable=False),
        sa.Column("method_id", sa.Integer(), nullable=False),
        sa.Column("network", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("address_memo", sa.Text(), nullable=True),
        sa.Column("amount", sa.Numeric(38, 6), nullable=False),
        sa.Column("network_fee", sa.Numeric(38, 6), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("substatus", sa.Text(), nullable=True),
        sa.Column("external_tx_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("processed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_withdrawals"),
        sa.UniqueConstraint("request_key", name="uq_withdrawals_request_key"),
        sa.UniqueConstraint("network", "external_tx_id", name="uq_withdrawals_network_external_tx_id"),
        sa.ForeignKeyConstraint(["method_id"], ["withdrawal_methods.id"], name="fk_withdrawals_method_id"),
        sa.CheckConstraint(
            "(status, coalesce(substatus, '')) IN (('pending', ''), ('pending', 'processing'), ('success', ''),"
            " ('failed', 'failed'), ('failed', 'invalid_address'), ('failed', 'unknown'),"
            " ('cancelled', 'cancelled_by_user'), ('cancelled', 'cancelled_by_admin'))",
            name=op.f("ck_withdrawals_status"),
        ),
        sa.CheckConstraint(
            "(status = 'success') = (external_tx_id IS NOT NULL)", name=op.f("ck_withdrawals_external_tx_id")
        ),
        sa.CheckConstraint(
            "(status = 'pending') = (processed_at IS NULL)", name=op.f("ck_withdrawals_processed_at")
        ),
        sa.CheckConstraint("network_fee >= 0 AND amount > network_fee", name=op.f("ck_withdrawals_amount")),
    )
    op.create_index("ix_withdrawals_list", "withdrawals", ["merchant_id", "created_at", "id"])
    op.create_index(
        "ix_withdrawals_list_status", "withdrawals", ["merchant_id", "status", "created_at", "id"]
    )
    op.create_index("ix_withdrawals_status", "withdrawals", ["status", "id"])


def _create_inbox() -> None:
    op.create_table(
        "inbox",
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("event_id", name="pk_inbox"),
    )
    op.create_index("ix_inbox_received_at", "inbox", ["received_at"])
    op.create_table(
        "parked",
        sa.Column("event_id", sa.Uuid(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("failed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("parked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("event_id", name="pk_parked"),
    )
    op.create_index(
        "ix_parked_parked", "parked", ["parked_at"], postgresql_where=sa.text("parked_at IS NOT NULL")
    )
