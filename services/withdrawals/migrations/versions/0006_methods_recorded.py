"""A record of each withdrawal method that is older than the records: a migration makes the first methods"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

RECORD_EACH = """
INSERT INTO records (kind, subject, number, at, facts)
SELECT 'method', id::text, 1, clock_timestamp(), to_jsonb(withdrawal_methods)
FROM withdrawal_methods
WHERE NOT EXISTS (SELECT FROM records WHERE kind = 'method' AND subject = id::text)
ON CONFLICT DO NOTHING
"""


def upgrade() -> None:
    op.execute(RECORD_EACH)
