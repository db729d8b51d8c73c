"""Credits whose invoice was paid on another day (UTC) than that of the credit"""

from alembic import op

from kit.db.migrations import guards

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_TABLE = """
CREATE TABLE IF NOT EXISTS credits_of_other_days (
  invoice_id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  amount numeric(38, 6) NOT NULL,
  paid_at timestamp with time zone NOT NULL,
  credited_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_credits_of_other_days PRIMARY KEY (invoice_id),
  CONSTRAINT ck_credits_of_other_days_amount CHECK (amount > 0)
)
"""
_INDEX = "CREATE INDEX IF NOT EXISTS ix_credits_of_other_days_merchant ON credits_of_other_days (merchant_id, paid_at)"


def upgrade() -> None:
    with guards.each_by_itself():
        for statement in (_TABLE, _INDEX):
            op.execute(statement)
