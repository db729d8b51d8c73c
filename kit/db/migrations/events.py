"""The steps that make the tables of outgoing and incoming facts (kit.events.outbox, kit.events.inbox)."""

from alembic import op

_OUTBOX = """
CREATE TABLE outbox (
  id uuid NOT NULL,
  subject text NOT NULL,
  payload bytea NOT NULL,
  request_id text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  published_at timestamp with time zone,
  traceparent text,
  signature text,
  CONSTRAINT pk_outbox PRIMARY KEY (id)
);
CREATE INDEX ix_outbox_published ON outbox (published_at) WHERE published_at IS NOT NULL;
CREATE INDEX ix_outbox_unpublished ON outbox (id) WHERE published_at IS NULL;
"""
_BUS_STATE = """
CREATE TABLE bus_state (
  stream text NOT NULL,
  stream_created_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_bus_state PRIMARY KEY (stream)
);
"""
_INBOX = """
CREATE TABLE inbox (
  event_id uuid NOT NULL,
  received_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_inbox PRIMARY KEY (event_id)
);
CREATE INDEX ix_inbox_received_at ON inbox (received_at);
"""
_PARKED = """
CREATE TABLE parked (
  event_id uuid NOT NULL,
  subject text NOT NULL,
  payload bytea NOT NULL,
  request_id text NOT NULL,
  error text NOT NULL,
  attempts integer NOT NULL,
  failed_at timestamp with time zone NOT NULL,
  parked_at timestamp with time zone,
  signature text,
  claimed_id uuid,
  CONSTRAINT pk_parked PRIMARY KEY (event_id)
);
CREATE INDEX ix_parked_parked ON parked (parked_at) WHERE parked_at IS NOT NULL;
CREATE INDEX ix_parked_words ON parked (sha256(payload));
"""


def make_outbox() -> None:
    """Makes the tables of a service that announces facts."""
    op.execute(_OUTBOX)
    op.execute(_BUS_STATE)


def make_inbox() -> None:
    """Makes the tables of a service that takes facts in."""
    op.execute(_INBOX)
    op.execute(_PARKED)
