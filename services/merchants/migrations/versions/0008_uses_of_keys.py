"""The last use of an API key, and the key that replaces it"""

from alembic import op

from kit.db.migrations import guards

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with guards.each_by_itself():
        op.execute(
            "ALTER TABLE api_keys ADD COLUMN IF NOT EXISTS replaced_by uuid,"
            " ADD COLUMN IF NOT EXISTS last_used_at timestamp with time zone"
        )
