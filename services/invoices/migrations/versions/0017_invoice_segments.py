"""Counts of merchants' invoices by segment, the pending ones among them, and the place up to which they are counted"""

from alembic import op

from kit.db.migrations import guards

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_SEGMENTS = """
CREATE TABLE IF NOT EXISTS invoice_segments (
  merchant_id uuid NOT NULL,
  size integer NOT NULL,
  number bigint NOT NULL,
  currency_code text COLLATE "C" NOT NULL,
  first_at timestamp with time zone NOT NULL,
  first_id uuid NOT NULL,
  last_at timestamp with time zone NOT NULL,
  last_id uuid NOT NULL,
  created bigint NOT NULL,
  success bigint NOT NULL,
  fail bigint NOT NULL,
  expired bigint NOT NULL,
  canceled bigint NOT NULL,
  CONSTRAINT pk_invoice_segments PRIMARY KEY (merchant_id, size, number, currency_code)
)
"""
# For the proof, which reads them page by page.
_BY_FIRST = """
CREATE INDEX IF NOT EXISTS ix_invoice_segments_first ON invoice_segments (first_id)
"""
# For lists of a rare currency: they read only the segments that have it.
_BY_CURRENCY = """
CREATE INDEX IF NOT EXISTS ix_invoice_segments_currency ON invoice_segments (merchant_id, size, currency_code, number)
"""
_PENDING = """
CREATE TABLE IF NOT EXISTS segment_pending (
  merchant_id uuid NOT NULL,
  invoice_id uuid NOT NULL,
  ordinal bigint NOT NULL,
  CONSTRAINT pk_segment_pending PRIMARY KEY (merchant_id, invoice_id)
)
"""
_PLACE = """
CREATE TABLE IF NOT EXISTS segment_place (
  one boolean NOT NULL DEFAULT true,
  invoice_at timestamp with time zone NOT NULL,
  invoice_id uuid NOT NULL,
  CONSTRAINT pk_segment_place PRIMARY KEY (one),
  CONSTRAINT ck_segment_place_one CHECK (one)
)
"""
_FROM_THE_START = """
INSERT INTO segment_place VALUES (true, '1970-01-01 00:00+00', '00000000-0000-0000-0000-000000000000')
ON CONFLICT DO NOTHING
"""


def upgrade() -> None:
    with guards.each_by_itself():
        for statement in (_SEGMENTS, _BY_FIRST, _BY_CURRENCY, _PENDING, _PLACE, _FROM_THE_START):
            op.execute(statement)
