"""New addresses of which accounts is still to be told"""

from alembic import op

from kit.db.migrations import guards

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

_TABLE = """
CREATE TABLE IF NOT EXISTS address_notices (
  address_id uuid NOT NULL,
  due_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_address_notices PRIMARY KEY (address_id)
)
"""


def upgrade() -> None:
    with guards.each_by_itself():
        op.execute(_TABLE)
