"""The balance of each merchant's account at the end of each day, for statements of the past"""

from alembic import op

from kit.db.migrations import guards

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

# No foreign key: to add it would stop the credits of the version before for a moment, and accounts are never deleted.
_BALANCES = """
CREATE TABLE IF NOT EXISTS daily_balances (
  account integer NOT NULL,
  day date NOT NULL,
  balance numeric(38, 6) NOT NULL,
  CONSTRAINT pk_daily_balances PRIMARY KEY (account, day)
)
"""


def upgrade() -> None:
    with guards.each_by_itself():
        op.execute(_BALANCES)
