"""E-mails to owners of merchants about new addresses"""

from alembic import op

from kit.db.migrations import guards

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# No foreign key to people: a person is never deleted, and the version before changes people meanwhile.
_TABLE = """
CREATE TABLE IF NOT EXISTS notices (
  id uuid NOT NULL,
  person_id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  network text NOT NULL,
  address text NOT NULL,
  added_by text NOT NULL,
  usable_at timestamp with time zone NOT NULL,
  created_at timestamp with time zone NOT NULL,
  attempts integer NOT NULL,
  due_at timestamp with time zone NOT NULL,
  last_error text NOT NULL,
  CONSTRAINT pk_notices PRIMARY KEY (id, person_id)
)
"""
_DUE = "CREATE INDEX IF NOT EXISTS ix_notices_due_at ON notices (due_at)"


def upgrade() -> None:
    with guards.each_by_itself():
        op.execute(_TABLE)
        op.execute(_DUE)
