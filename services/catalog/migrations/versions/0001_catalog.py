"""Currencies, payment methods with their logos, and rates"""

from alembic import op

from kit.db.migrations import acts, approvals, guards

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_CURRENCIES = """
CREATE TABLE currencies (
  code text NOT NULL,
  name text NOT NULL,
  symbol text NOT NULL,
  decimals smallint NOT NULL,
  min_amount numeric(20, 2) NOT NULL,
  max_amount numeric(20, 2) NOT NULL,
  markup numeric(7, 6) NOT NULL,
  enabled boolean NOT NULL,
  CONSTRAINT pk_currencies PRIMARY KEY (code),
  CONSTRAINT ck_currencies_code CHECK (code ~ '^[A-Z]{3}$'),
  CONSTRAINT ck_currencies_decimals CHECK (decimals BETWEEN 0 AND 2),
  CONSTRAINT ck_currencies_amounts CHECK (min_amount > 0 AND min_amount <= max_amount),
  CONSTRAINT ck_currencies_markup CHECK (markup BETWEEN 0 AND 1)
);
"""
_LOGOS = """
CREATE TABLE logos (
  digest text NOT NULL,
  content_type text NOT NULL,
  content bytea NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_logos PRIMARY KEY (digest),
  CONSTRAINT ck_logos_digest CHECK (digest = encode(sha256(content), 'hex')),
  CONSTRAINT ck_logos_content_type CHECK (content_type IN ('image/jpeg', 'image/png', 'image/webp')),
  CONSTRAINT ck_logos_content CHECK (octet_length(content) BETWEEN 1 AND 32768)
);
"""
_PAYMENT_METHODS = """
CREATE TABLE payment_methods (
  code text NOT NULL,
  currency_code text NOT NULL,
  name text NOT NULL,
  min_sum numeric(20, 2) NOT NULL,
  max_sum numeric(20, 2) NOT NULL,
  payment_minutes smallint NOT NULL,
  commission numeric(7, 6) NOT NULL,
  logo_url text,
  active boolean NOT NULL,
  logo text,
  takes_reference boolean DEFAULT false NOT NULL,
  account_kind text DEFAULT 'free' NOT NULL,
  CONSTRAINT pk_payment_methods PRIMARY KEY (code),
  CONSTRAINT fk_payment_methods_currency_code FOREIGN KEY (currency_code) REFERENCES currencies (code),
  CONSTRAINT fk_payment_methods_logo FOREIGN KEY (logo) REFERENCES logos (digest),
  CONSTRAINT ck_payment_methods_sums CHECK (min_sum > 0 AND min_sum <= max_sum),
  CONSTRAINT ck_payment_methods_payment_minutes CHECK (payment_minutes BETWEEN 1 AND 1440),
  CONSTRAINT ck_payment_methods_commission CHECK (commission BETWEEN 0 AND 1),
  CONSTRAINT ck_payment_methods_account_kind CHECK (account_kind IN ('free', 'iban', 'card', 'phone', 'upi'))
);
CREATE INDEX ix_payment_methods_currency_code ON payment_methods (currency_code);
"""
_RATES = """
CREATE TABLE rates (
  id bigint GENERATED ALWAYS AS IDENTITY,
  currency_code text NOT NULL,
  source_rate numeric(20, 8) NOT NULL,
  origin text NOT NULL,
  taken_at timestamp with time zone NOT NULL,
  document jsonb NOT NULL,
  validity text DEFAULT 'as_polled' NOT NULL,
  seal bytea NOT NULL,
  CONSTRAINT pk_rates PRIMARY KEY (id),
  CONSTRAINT uq_rates_seal UNIQUE (seal),
  CONSTRAINT fk_rates_currency_code FOREIGN KEY (currency_code) REFERENCES currencies (code),
  CONSTRAINT ck_rates_origin CHECK (origin IN ('operator', 'sources', 'accepted')),
  CONSTRAINT ck_rates_source_rate CHECK (source_rate > 0),
  CONSTRAINT ck_rates_seal CHECK (octet_length(seal) = 32),
  CONSTRAINT ck_rates_validity CHECK (validity IN ('as_polled', 'hour', 'day', 'until_replaced')),
  CONSTRAINT ck_rates_origin_of_validity CHECK (origin = 'operator' OR validity = 'as_polled'),
  CONSTRAINT ck_rates_document CHECK (
    jsonb_typeof(document) = 'object' AND octet_length(CAST(document AS text)) <= 65536
    AND jsonb_typeof(coalesce(document -> 'quotes', 'null')) = 'array'
    AND NOT jsonb_path_exists(document, 'strict $.quotes[*] ? (!exists (@ ? (
      @.source.type() == "string"
      && (@.rate.type() == "null" || @.rate.type() == "number" || @.rate like_regex "^[0-9]{1,40}([.][0-9]{1,40})?$")
    )))', silent => true)
  )
);
CREATE INDEX ix_rates_newest ON rates (currency_code, id);
CREATE INDEX ix_rates_decided ON rates (currency_code, id) WHERE origin <> 'sources';
CREATE INDEX ix_rates_taken ON rates (currency_code, taken_at);
"""
_HELD_RATES = """
CREATE TABLE held_rates (
  currency_code text NOT NULL,
  source_rate numeric(20, 8) NOT NULL,
  taken_at timestamp with time zone NOT NULL,
  document jsonb NOT NULL,
  CONSTRAINT pk_held_rates PRIMARY KEY (currency_code),
  CONSTRAINT fk_held_rates_currency_code FOREIGN KEY (currency_code) REFERENCES currencies (code),
  CONSTRAINT ck_held_rates_source_rate CHECK (source_rate > 0),
  CONSTRAINT ck_held_rates_document CHECK (
    jsonb_typeof(document) = 'object' AND octet_length(CAST(document AS text)) <= 65536
    AND jsonb_typeof(coalesce(document -> 'quotes', 'null')) = 'array'
    AND NOT jsonb_path_exists(document, 'strict $.quotes[*] ? (!exists (@ ? (
      @.source.type() == "string"
      && (@.rate.type() == "null" || @.rate.type() == "number" || @.rate like_regex "^[0-9]{1,40}([.][0-9]{1,40})?$")
    )))', silent => true)
  )
);
"""
_POLL_TURNS = """
CREATE TABLE poll_turns (
  id smallint NOT NULL,
  started_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_poll_turns PRIMARY KEY (id),
  CONSTRAINT ck_poll_turns_id CHECK (id = 1)
);
"""
# Rates are evidence of the prices of deals: no role may change them, the service's own included.
_RATES_STAY = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER rates_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON rates
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
"""


def upgrade() -> None:
    for table in (_CURRENCIES, _LOGOS, _PAYMENT_METHODS, _RATES, _RATES_STAY, _HELD_RATES, _POLL_TURNS):
        op.execute(table)
    acts.make_acts()
    approvals.make_approvals()
    guards.bound_values()
