"""The terms of events never change; attempts stay for at least a day"""

from alembic import op

from kit.db.migrations import guards

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

EVENT_TERMS = (
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
ATTEMPT_COLUMNS = (
    "id",
    "event_id",
    "try_number",
    "trigger",
    "status",
    "http_status",
    "response_headers",
    "response_body",
    "error_message",
    "duration_ms",
    "created_at",
)

# Retention deletes older ones only; its shortest setting is a day.
YOUNG_ATTEMPTS_STAY = """
CREATE OR REPLACE TRIGGER attempts_stay_for_a_day BEFORE DELETE ON attempts
  FOR EACH ROW WHEN (OLD.created_at > now() - interval '1 day')
  EXECUTE FUNCTION refuse_rewriting('attempts stay for a day at least');
"""


def upgrade() -> None:
    guards.make_refusal()
    guards.keep("events", EVENT_TERMS)
    guards.stay("events")
    guards.keep("attempts", ATTEMPT_COLUMNS)
    op.execute(YOUNG_ATTEMPTS_STAY)
