"""Events with their leases, attempts by month, inbox and parked messages"""

from alembic import op

from kit.db.migrations import acts, events, guards, months

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_EVENTS = """
CREATE TABLE events (
  id bigint GENERATED ALWAYS AS IDENTITY,
  payload_event_id uuid NOT NULL,
  invoice_id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  key_id uuid NOT NULL,
  event_type text NOT NULL,
  status text NOT NULL,
  callback_url text NOT NULL,
  destination text NOT NULL,
  payload bytea NOT NULL,
  auto_attempts integer NOT NULL,
  manual_attempts integer NOT NULL,
  next_retry_at timestamp with time zone,
  last_manual_at timestamp with time zone,
  locked_at timestamp with time zone,
  locked_by text,
  lease_token uuid,
  lease_until timestamp with time zone,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  request_id text,
  traceparent text,
  seal text,
  CONSTRAINT pk_events PRIMARY KEY (id),
  CONSTRAINT uq_events_invoice_id UNIQUE (invoice_id),
  CONSTRAINT uq_events_payload_event_id UNIQUE (payload_event_id),
  CONSTRAINT ck_events_status CHECK (status IN ('pending', 'success', 'dead')),
  CONSTRAINT ck_events_next_retry_at CHECK ((status = 'pending') = (next_retry_at IS NOT NULL)),
  CONSTRAINT ck_events_lease CHECK (num_nulls(locked_at, locked_by, lease_token, lease_until) IN (0, 4)),
  CONSTRAINT ck_events_attempts CHECK (auto_attempts >= 0 AND manual_attempts >= 0)
) WITH (fillfactor = 70);
CREATE INDEX ix_events_due ON events (next_retry_at) WHERE status = 'pending';
CREATE INDEX ix_events_lanes ON events (merchant_id, destination, next_retry_at, id) WHERE status = 'pending';
CREATE INDEX ix_events_list ON events (created_at, id);
CREATE INDEX ix_events_list_unsent ON events (status, created_at, id) WHERE status <> 'success';
CREATE INDEX ix_events_merchant ON events (merchant_id, created_at, id);
CREATE INDEX ix_events_merchant_order ON events (merchant_id, id);
CREATE INDEX ix_events_merchant_dead ON events (merchant_id, created_at, id) WHERE status = 'dead';
"""
_ATTEMPTS = """
CREATE TABLE attempts (
  id bigint GENERATED ALWAYS AS IDENTITY,
  event_id bigint NOT NULL,
  try_number integer NOT NULL,
  trigger text NOT NULL,
  status text NOT NULL,
  http_status integer,
  response_headers jsonb,
  response_body text,
  error_message text,
  duration_ms integer NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_attempts PRIMARY KEY (id),
  CONSTRAINT uq_attempts_event_id_try_number UNIQUE (event_id, try_number),
  CONSTRAINT fk_attempts_event_id FOREIGN KEY (event_id) REFERENCES events (id),
  CONSTRAINT ck_attempts_try_number CHECK (try_number > 0),
  CONSTRAINT ck_attempts_trigger CHECK (trigger IN ('auto', 'manual')),
  CONSTRAINT ck_attempts_status CHECK (status IN ('success', 'failure')),
  CONSTRAINT ck_attempts_http_status CHECK (status = 'failure' OR http_status BETWEEN 200 AND 299),
  CONSTRAINT ck_attempts_duration_ms CHECK (duration_ms >= 0),
  CONSTRAINT ck_attempts_response_headers CHECK (
    jsonb_typeof(response_headers) = 'object' AND octet_length(CAST(response_headers AS text)) <= 131072
    AND NOT jsonb_path_exists(response_headers, 'strict $.* ? (@.type() != "string")')
  )
);
"""
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
_YOUNG_ATTEMPTS_STAY = """
CREATE TRIGGER attempts_stay_for_a_day BEFORE DELETE ON attempts
  FOR EACH ROW WHEN (OLD.created_at > now() - interval '1 day')
  EXECUTE FUNCTION refuse_rewriting('attempts stay for a day at least');
"""
# Attempts of a pending event stay. Few events are pending for that long.
_IN_USE = """
SELECT FROM events
WHERE status = 'pending' AND created_at < %2$L AND EXISTS (SELECT FROM %1$I WHERE event_id = events.id)
"""


def upgrade() -> None:
    op.execute(_EVENTS)
    op.execute(_ATTEMPTS)
    guards.make_refusal()
    # A row that no process made has no right seal; the true event replaces it, with a seal of its own.
    guards.keep("events", EVENT_TERMS, unless="OLD.seal IS DISTINCT FROM NEW.seal")
    guards.stay("events")
    guards.keep("attempts", ATTEMPT_COLUMNS)
    op.execute(_YOUNG_ATTEMPTS_STAY)
    months.divide("attempts", "created_at", in_use=_IN_USE, youngest="1 day", ahead=3)
    events.make_inbox()
    acts.make_acts()
    guards.bound_values()
