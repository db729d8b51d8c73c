"""Currencies, payment methods and rates."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

FIAT = sa.Numeric(20, 2)
FRACTION = sa.Numeric(7, 6)
SOURCE_RATE = sa.Numeric(20, 8)
TIME = sa.DateTime(timezone=True)
POSITIVE_RATE = "source_rate > 0 AND source_rate <> 'NaN'"


def upgrade() -> None:
    _currencies()
    _payment_methods()
    _rates()
    _held_rates_and_poll_turns()


def downgrade() -> None:
    for table in ("poll_turns", "held_rates", "rates", "payment_methods", "currencies"):
        op.drop_table(table)
    op.execute("DROP FUNCTION refuse_change()")


def _currencies() -> None:
    op.create_table(
        "currencies",
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("symbol", sa.Text, nullable=False),
        sa.Column("decimals", sa.SmallInteger, nullable=False),
        sa.Column("min_amount", FIAT, nullable=False),
        sa.Column("max_amount", FIAT, nullable=False),
        sa.Column("markup", FRACTION, nullable=False),
        sa.Column("enabled", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("code", name="pk_currencies"),
        sa.CheckConstraint("code ~ '^[A-Z]{3}$'", name="ck_currencies_code"),
        sa.CheckConstraint("decimals BETWEEN 0 AND 2", name="ck_currencies_decimals"),
        sa.CheckConstraint(
            "min_amount > 0 AND min_amount <= max_amount AND max_amount <> 'NaN'",
            name="ck_currencies_amounts",
        ),
        sa.CheckConstraint("markup BETWEEN 0 AND 1", name="ck_currencies_markup"),
    )


def _payment_methods() -> None:
    op.create_table(
        "payment_methods",
        sa.Column("code", sa.Text, nullable=False),
        sa.Column("currency_code", sa.Text, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("min_sum", FIAT, nullable=False),
        sa.Column("max_sum", FIAT, nullable=False),
        sa.Column("payment_minutes", sa.SmallInteger, nullable=False),
        sa.Column("commission", FRACTION, nullable=False),
        sa.Column("logo_url", sa.Text, nullable=True),
        sa.Column("active", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("code", name="pk_payment_methods"),
        sa.ForeignKeyConstraint(
            ["currency_code"], ["currencies.code"], name="fk_payment_methods_currency_code"
        ),
        sa.CheckConstraint(
            "min_sum > 0 AND min_sum <= max_sum AND max_sum <> 'NaN'", name="ck_payment_methods_sums"
        ),
        sa.CheckConstraint("payment_minutes BETWEEN 1 AND 1440", name="ck_payment_methods_payment_minutes"),
        sa.CheckConstraint("commission BETWEEN 0 AND 1", name="ck_payment_methods_commission"),
    )
    op.create_index("ix_payment_methods_currency_code", "payment_methods", ["currency_code"])


def _rates() -> None:
    op.create_table(
        "rates",
        sa.Column("id", sa.BigInteger, sa.Identity(always=True), nullable=False),
        sa.Column("currency_code", sa.Text, nullable=False),
        sa.Column("source_rate", SOURCE_RATE, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("taken_at", TIME, nullable=False),
        sa.Column("document", JSONB, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_rates"),
        sa.ForeignKeyConstraint(["currency_code"], ["currencies.code"], name="fk_rates_currency_code"),
        sa.CheckConstraint("origin IN ('operator', 'sources', 'accepted')", name="ck_rates_origin"),
        sa.CheckConstraint(POSITIVE_RATE, name="ck_rates_source_rate"),
    )
    op.create_index("ix_rates_newest", "rates", ["currency_code", "id"])
    op.create_index(
        "ix_rates_decided", "rates", ["currency_code", "id"], postgresql_where=sa.text("origin <> 'sources'")
    )
    # Rates are evidence of the prices of deals: no role may change them, the service's own included.
    op.execute(
        """
        CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
        END $$
        """
    )
    op.execute(
        """
        CREATE TRIGGER rates_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON rates
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
        """
    )


def _held_rates_and_poll_turns() -> None:
    op.create_table(
        "held_rates",
        sa.Column("currency_code", sa.Text, nullable=False),
        sa.Column("source_rate", SOURCE_RATE, nullable=False),
        sa.Column("taken_at", TIME, nullable=False),
        sa.Column("document", JSONB, nullable=False),
        sa.PrimaryKeyConstraint("currency_code", name="pk_held_rates"),
        sa.ForeignKeyConstraint(["currency_code"], ["currencies.code"], name="fk_held_rates_currency_code"),
        sa.CheckConstraint(POSITIVE_RATE, name="ck_held_rates_source_rate"),
    )
    op.create_table(
        "poll_turns",
        sa.Column("id", sa.SmallInteger, autoincrement=False, nullable=False),
        sa.Column("started_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_poll_turns"),
        sa.CheckConstraint("id = 1", name="ck_poll_turns_id"),
    )
