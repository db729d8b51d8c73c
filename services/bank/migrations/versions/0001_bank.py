"""Files of banks, statements, lines, and the deals that lines have paid"""

from alembic import op

from kit.db.migrations import acts, guards

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_IMPORTS = """
CREATE TABLE imports (
  id uuid NOT NULL,
  digest bytea NOT NULL,
  file_name text NOT NULL,
  profile text NOT NULL,
  content bytea NOT NULL,
  state text NOT NULL,
  format text,
  problem text,
  lines integer NOT NULL,
  new_lines integer NOT NULL,
  imported_at timestamp with time zone NOT NULL,
  seal bytea NOT NULL,
  CONSTRAINT pk_imports PRIMARY KEY (id),
  CONSTRAINT uq_imports_digest UNIQUE (digest, profile),
  CONSTRAINT ck_imports_digest CHECK (octet_length(digest) = 32),
  CONSTRAINT ck_imports_content CHECK (octet_length(content) BETWEEN 1 AND 8388608),
  CONSTRAINT ck_imports_state CHECK (state IN ('waiting', 'taken', 'refused')),
  CONSTRAINT ck_imports_problem CHECK ((state = 'refused') = (problem IS NOT NULL)),
  CONSTRAINT ck_imports_seal CHECK (octet_length(seal) = 32)
);
CREATE INDEX ix_imports_waiting ON imports (id) WHERE state = 'waiting';
"""
_STATEMENTS = """
CREATE TABLE statements (
  id uuid NOT NULL,
  import_id uuid NOT NULL,
  account text NOT NULL,
  currency_code text NOT NULL,
  number text NOT NULL,
  opening numeric(22, 2),
  closing numeric(22, 2),
  opened_on date,
  closed_on date,
  seal bytea NOT NULL,
  CONSTRAINT pk_statements PRIMARY KEY (id),
  CONSTRAINT fk_statements_import_id FOREIGN KEY (import_id) REFERENCES imports (id),
  CONSTRAINT ck_statements_account CHECK (account ~ '^[0-9A-Z]{1,64}$'),
  CONSTRAINT ck_statements_currency_code CHECK (currency_code ~ '^[A-Z]{3}$'),
  CONSTRAINT ck_statements_seal CHECK (octet_length(seal) = 32)
);
CREATE INDEX ix_statements_import ON statements (import_id);
CREATE INDEX ix_statements_account ON statements (account, currency_code, closed_on, opened_on);
"""
_LINES = """
CREATE TABLE lines (
  id uuid NOT NULL,
  import_id uuid,
  statement_id uuid,
  connector_id uuid,
  account text NOT NULL,
  identity text NOT NULL,
  direction text NOT NULL,
  amount numeric(22, 2) NOT NULL,
  currency_code text NOT NULL,
  status text NOT NULL,
  booked_on date,
  valued_on date,
  counterparty_name text NOT NULL,
  counterparty_account text NOT NULL,
  text text NOT NULL,
  reference_texts text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  state text NOT NULL,
  tier text,
  deal_id uuid,
  invoice_id uuid,
  deal_amount numeric(22, 2),
  reason text,
  refund_id uuid,
  seal bytea NOT NULL,
  tried_at timestamp with time zone,
  held text,
  used_for text,
  CONSTRAINT pk_lines PRIMARY KEY (id),
  CONSTRAINT uq_lines_account_identity UNIQUE (account, identity),
  CONSTRAINT fk_lines_import_id FOREIGN KEY (import_id) REFERENCES imports (id),
  CONSTRAINT fk_lines_statement_id FOREIGN KEY (statement_id) REFERENCES statements (id),
  CONSTRAINT fk_lines_connector_id FOREIGN KEY (connector_id) REFERENCES connectors (id),
  CONSTRAINT ck_lines_source CHECK (
    (import_id IS NULL) = (statement_id IS NULL) AND (import_id IS NULL) = (connector_id IS NOT NULL)
  ),
  CONSTRAINT ck_lines_direction CHECK (direction IN ('credit', 'debit')),
  CONSTRAINT ck_lines_amount CHECK (amount > 0),
  CONSTRAINT ck_lines_status CHECK (status IN ('pending', 'booked', 'reversed')),
  CONSTRAINT ck_lines_state CHECK (
    state IN ('waiting', 'proposed', 'unmatched', 'matched', 'ignored', 'outgoing', 'reversed')
  ),
  CONSTRAINT ck_lines_tier CHECK (tier IN ('certain', 'amount_differs', 'confirmed', 'ended', 'hint', 'none')),
  CONSTRAINT ck_lines_proposal CHECK (
    (deal_id IS NULL) = (invoice_id IS NULL) AND (deal_id IS NULL) = (deal_amount IS NULL)
    AND (state <> 'proposed' OR deal_id IS NOT NULL)
  ),
  CONSTRAINT ck_lines_reason CHECK ((state = 'ignored') = (reason IS NOT NULL)),
  CONSTRAINT ck_lines_refund CHECK (refund_id IS NULL OR direction = 'debit'),
  CONSTRAINT ck_lines_seal CHECK (octet_length(seal) = 32),
  CONSTRAINT ck_lines_used_for CHECK (used_for ~ '^(correction|refund):[0-9a-f-]{36}$')
);
CREATE UNIQUE INDEX uq_lines_refund ON lines (refund_id) WHERE refund_id IS NOT NULL;
CREATE INDEX ix_lines_state ON lines (state, id);
CREATE INDEX ix_lines_deal ON lines (deal_id) WHERE deal_id IS NOT NULL;
CREATE INDEX ix_lines_account ON lines (account, id);
CREATE UNIQUE INDEX uq_lines_posted ON lines (identity) WHERE connector_id IS NOT NULL;
CREATE INDEX ix_lines_connector ON lines (connector_id, id) WHERE connector_id IS NOT NULL;
CREATE INDEX ix_lines_day ON lines (
  (coalesce(booked_on, valued_on, CAST(created_at AT TIME ZONE 'UTC' AS date))), account, currency_code
);
CREATE INDEX ix_lines_waiting ON lines (id) WHERE state = 'waiting' AND status = 'booked';
"""
_LINE_MATCHES = """
CREATE TABLE line_matches (
  number bigint NOT NULL,
  line_id uuid NOT NULL,
  deal_id uuid NOT NULL,
  invoice_id uuid NOT NULL,
  amount numeric(22, 2) NOT NULL,
  paid_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_line_matches PRIMARY KEY (line_id, deal_id),
  CONSTRAINT ck_line_matches_amount CHECK (amount > 0)
);
CREATE INDEX ix_line_matches_number ON line_matches (number);
CREATE INDEX ix_line_matches_deal ON line_matches (deal_id);
"""
_CONNECTORS = """
CREATE TABLE connectors (
  id uuid NOT NULL,
  name text NOT NULL,
  hint text NOT NULL,
  key_hash bytea NOT NULL,
  accounts text[] NOT NULL,
  silence_seconds integer,
  created_at timestamp with time zone NOT NULL,
  heard_at timestamp with time zone,
  revoked_at timestamp with time zone,
  CONSTRAINT pk_connectors PRIMARY KEY (id),
  CONSTRAINT uq_connectors_key_hash UNIQUE (key_hash),
  CONSTRAINT ck_connectors_name CHECK (name ~ '^[0-9A-Za-z_-]{1,64}$'),
  CONSTRAINT ck_connectors_key_hash CHECK (octet_length(key_hash) = 32),
  CONSTRAINT ck_connectors_silence_seconds CHECK (silence_seconds BETWEEN 60 AND 2592000)
);
CREATE INDEX ix_connectors_name ON connectors (name);
CREATE INDEX ix_connectors_heard ON connectors (coalesce(heard_at, created_at))
  WHERE revoked_at IS NULL AND silence_seconds IS NOT NULL;
"""
_CSV_PROFILES = """
CREATE TABLE csv_profiles (
  name text NOT NULL,
  profile text,
  actor text NOT NULL,
  changed_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_csv_profiles PRIMARY KEY (name),
  CONSTRAINT ck_csv_profiles_name CHECK (name ~ '^[0-9A-Za-z_-]{1,64}$')
);
"""
CONNECTOR_TERMS = ("id", "name", "hint", "key_hash", "accounts", "silence_seconds", "created_at")
IMPORT_TERMS = ("id", "digest", "file_name", "profile", "content", "imported_at", "seal")
LINE_TERMS = (
    *("id", "import_id", "statement_id", "connector_id", "account", "identity", "direction", "amount"),
    *("currency_code", "created_at"),
)
MATCH_TERMS = ("number", "line_id", "deal_id", "invoice_id", "amount", "paid_at")
"""A repair deletes rows of this copy and writes them anew."""
LINE_TEXTS = (
    *("booked_on", "valued_on", "counterparty_name", "counterparty_account", "text", "reference_texts"),
)
"""The bank may change them when it books a pending line."""


def upgrade() -> None:
    for step in (_IMPORTS, _STATEMENTS, _CONNECTORS, _LINES, _LINE_MATCHES, _CSV_PROFILES):
        op.execute(step)
    guards.make_refusal()
    guards.keep("imports", IMPORT_TERMS)
    guards.stay("imports")
    guards.append_only("statements")
    guards.keep("connectors", CONNECTOR_TERMS, ended="revoked_at")
    guards.stay("connectors")
    old, new = (", ".join(f"{row}.{each}" for each in LINE_TERMS) for row in ("OLD", "NEW"))
    pending = f"OLD.status = 'pending' AND ({old}) IS NOT DISTINCT FROM ({new})"
    guards.keep("lines", (*LINE_TERMS, *LINE_TEXTS), unless=pending)
    guards.stay("lines")
    guards.keep("line_matches", MATCH_TERMS)
    guards.stay("csv_profiles")
    acts.make_acts()
    guards.bound_values()
