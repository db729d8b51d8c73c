"""Deals have a payment reference and the sender's name; those that take a reference may share an account"""

import sqlalchemy as sa
from alembic import op

from kit.db.migrations import guards
from kit.db.migrations.steps import index_beside_traffic, narrowed_unique_index

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

OPEN = "status IN ('pending', 'appeal')"
REFERENCE = "reference ~ '^[0-9A-HJKMNP-TV-Z]{8}$'"
SENDER = "char_length(sender_name) BETWEEN 1 AND 128 AND (sender_name IS NULL) = (sender_words IS NULL)"
DEAL_TERMS = (
    "id",
    "invoice_id",
    "merchant_id",
    "method_code",
    "method_name",
    "currency_code",
    "currency_decimals",
    "invoice_amount",
    "conversion_rate",
    "client_percent",
    "merchant_percent",
    "requisite_id",
    "created_at",
    "expires_at",
    "reference",
    "takes_reference",
)


def upgrade() -> None:
    # The version before inserts deals without all of these. One statement: the code looks for one of them.
    with guards.each_by_itself():
        op.execute(
            "ALTER TABLE deals ADD COLUMN IF NOT EXISTS reference text,"
            " ADD COLUMN IF NOT EXISTS takes_reference boolean NOT NULL DEFAULT false,"
            " ADD COLUMN IF NOT EXISTS sender_name text, ADD COLUMN IF NOT EXISTS sender_words text"
        )
    for name, condition in (("reference", REFERENCE), ("sender_name", SENDER)):
        _check(f"ck_deals_{name}", condition)
    guards.keep("deals", DEAL_TERMS, ended="finished_at")
    guards.set_once("deals", ("sender_name", "sender_words"))
    index_beside_traffic("ix_deals_reference", "deals", ["reference"])
    index_beside_traffic("uq_deals_open_reference", "deals", ["reference"], where=sa.text(OPEN), unique=True)
    index_beside_traffic(
        "ix_deals_open_amount", "deals", ["requisite_id", "amount_fiat"], where=sa.text(OPEN)
    )
    narrowed_unique_index(
        "uq_deals_open_amount",
        "deals",
        ["requisite_id", "amount_fiat"],
        where=sa.text(f"{OPEN} AND NOT takes_reference"),
    )
    index_beside_traffic(
        "ix_deals_sender",
        "deals",
        [sa.text("to_tsvector('simple'::regconfig, sender_words)")],
        where=sa.text("sender_words IS NOT NULL"),
        using="gin",
    )


def _check(name: str, condition: str) -> None:
    """Adds a condition on the new columns without a scan of the table under its strongest lock."""
    with guards.each_by_itself():
        op.execute(
            "DO $$ BEGIN"
            f"  IF NOT EXISTS (SELECT FROM pg_constraint WHERE conname = '{name}') THEN"
            f"    ALTER TABLE deals ADD CONSTRAINT {name} CHECK ({condition}) NOT VALID;"
            "  END IF; END $$"
        )
        op.execute(f"ALTER TABLE deals VALIDATE CONSTRAINT {name}")
