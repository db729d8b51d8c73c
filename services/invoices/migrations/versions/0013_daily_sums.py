"""Sums by day for reports: of events, of times to confirmation, and the place up to which they are summed"""

from alembic import op

from kit.db.migrations import guards

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_SUMS = """
CREATE TABLE IF NOT EXISTS daily_sums (
  day date NOT NULL,
  merchant_id uuid NOT NULL,
  currency_code text COLLATE "C" NOT NULL,
  method_code text COLLATE "C" NOT NULL,
  created bigint NOT NULL,
  opened bigint NOT NULL,
  replaced bigint NOT NULL,
  marked bigint NOT NULL,
  confirmed bigint NOT NULL,
  rejected bigint NOT NULL,
  turnover numeric NOT NULL,
  commission numeric NOT NULL,
  turnover_usdt numeric NOT NULL,
  credited_usdt numeric NOT NULL,
  CONSTRAINT pk_daily_sums PRIMARY KEY (day, merchant_id, currency_code, method_code)
)
"""
_TIMES = """
CREATE TABLE IF NOT EXISTS daily_times (
  day date NOT NULL,
  merchant_id uuid NOT NULL,
  currency_code text COLLATE "C" NOT NULL,
  method_code text COLLATE "C" NOT NULL,
  span smallint NOT NULL,
  deals bigint NOT NULL,
  CONSTRAINT pk_daily_times PRIMARY KEY (day, merchant_id, currency_code, method_code, span)
)
"""
_PLACE = """
CREATE TABLE IF NOT EXISTS daily_place (
  one boolean NOT NULL DEFAULT true,
  transition_id bigint NOT NULL,
  invoice_at timestamp with time zone NOT NULL,
  invoice_id uuid NOT NULL,
  summed_until timestamp with time zone NOT NULL,
  CONSTRAINT pk_daily_place PRIMARY KEY (one),
  CONSTRAINT ck_daily_place_one CHECK (one)
)
"""
_FROM_THE_START = """
INSERT INTO daily_place
VALUES (true, 0, '-infinity', '00000000-0000-0000-0000-000000000000', '-infinity') ON CONFLICT DO NOTHING
"""


def upgrade() -> None:
    with guards.each_by_itself():
        for statement in (_SUMS, _TIMES, _PLACE, _FROM_THE_START):
            op.execute(statement)
