"""The address books of merchants"""

from alembic import op

from kit.db.migrations import guards

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

# No foreign key: to add it would stop withdrawals of the version before for a moment, and methods are never deleted.
_TABLE = """
CREATE TABLE IF NOT EXISTS withdrawal_addresses (
  id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  method_id integer NOT NULL,
  network text NOT NULL,
  address text NOT NULL,
  address_memo text,
  name text NOT NULL,
  added_by text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  usable_at timestamp with time zone NOT NULL,
  removed_at timestamp with time zone,
  CONSTRAINT pk_withdrawal_addresses PRIMARY KEY (id),
  CONSTRAINT ck_withdrawal_addresses_usable_at CHECK (usable_at >= created_at),
  CONSTRAINT ck_withdrawal_addresses_removed_at CHECK (removed_at >= created_at)
)
"""
_ONCE = """
CREATE UNIQUE INDEX IF NOT EXISTS uq_withdrawal_addresses_current
ON withdrawal_addresses (merchant_id, method_id, address, coalesce(address_memo, '')) WHERE removed_at IS NULL
"""
_OF_MERCHANT = """
CREATE INDEX IF NOT EXISTS ix_withdrawal_addresses_merchant ON withdrawal_addresses (merchant_id, created_at)
"""

TERMS = (
    "id",
    "merchant_id",
    "method_id",
    "network",
    "address",
    "address_memo",
    "name",
    "added_by",
    "created_at",
    "usable_at",
)


def upgrade() -> None:
    with guards.each_by_itself():
        for statement in (_TABLE, _ONCE, _OF_MERCHANT):
            op.execute(statement)
    guards.record("withdrawal_addresses", "address")
    guards.keep("withdrawal_addresses", TERMS, ended="removed_at")
    guards.stay("withdrawal_addresses")
