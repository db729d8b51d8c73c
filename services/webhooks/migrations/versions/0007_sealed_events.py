"""The seal of an event, made from its terms by the process that made the event"""

from alembic import op

from kit.db.migrations import guards

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

TERMS = (
    "id",
    "payload_event_id",
    "invoice_id",
    "merchant_id",
    "key_id",
    "event_type",
    "callback_url",
    "destination",
    "payload",
    "created_at",
)


def upgrade() -> None:
    op.execute("ALTER TABLE events ADD COLUMN IF NOT EXISTS seal text")
    # A row that no process made has no right seal; the true event replaces it, with a seal of its own.
    guards.keep("events", TERMS, unless="OLD.seal IS DISTINCT FROM NEW.seal")
