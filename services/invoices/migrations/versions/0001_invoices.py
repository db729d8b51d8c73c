"""Invoices, deals with their history, requisites, cases, signed facts, the outbox, and sums for reports and lists"""

from alembic import op

from kit.db.migrations import acts, approvals, events, guards
from services.invoices.migrations.line_payments import LINE_PAYMENTS

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_LINKS = """
CREATE TABLE links (
  id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  code text NOT NULL,
  amount numeric(20, 2) NOT NULL,
  currency_code text NOT NULL,
  purpose text,
  note text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone,
  canceled_at timestamp with time zone,
  CONSTRAINT pk_links PRIMARY KEY (id),
  CONSTRAINT ck_links_amount CHECK (amount > 0),
  CONSTRAINT ck_links_code CHECK (code ~ '^[0-9A-HJKMNP-TV-Z]{8}$')
);
CREATE INDEX ix_links_list ON links (merchant_id, created_at, id);
"""
_INVOICES = """
CREATE TABLE invoices (
  id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  key_id uuid NOT NULL,
  external_id text NOT NULL,
  amount numeric(20, 2) NOT NULL,
  currency_code text NOT NULL,
  status text NOT NULL,
  customer_id text NOT NULL,
  purpose text,
  callback_url text,
  success_url text,
  fail_url text,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  finished_at timestamp with time zone,
  deal_id uuid,
  event_id uuid,
  seal bytea,
  link_id uuid,
  merchant_data text,
  CONSTRAINT pk_invoices PRIMARY KEY (id),
  CONSTRAINT uq_invoices_merchant_id_external_id UNIQUE (merchant_id, external_id),
  CONSTRAINT ck_invoices_finished_at CHECK ((status = 'pending') = (finished_at IS NULL)),
  CONSTRAINT ck_invoices_status CHECK (status IN ('pending', 'success', 'fail', 'expired', 'canceled')),
  CONSTRAINT ck_invoices_event_id CHECK ((finished_at IS NULL) = (event_id IS NULL)),
  CONSTRAINT ck_invoices_amount CHECK (amount > 0),
  CONSTRAINT ck_invoices_seal CHECK (octet_length(seal) = 32),
  CONSTRAINT fk_invoices_link_id_links FOREIGN KEY (link_id) REFERENCES links (id)
);
CREATE INDEX ix_invoices_customer ON invoices (merchant_id, customer_id, created_at);
CREATE INDEX ix_invoices_finished ON invoices (id) WHERE status <> 'pending';
CREATE INDEX ix_invoices_list ON invoices (merchant_id, created_at, id) INCLUDE (currency_code);
CREATE INDEX ix_invoices_list_status ON invoices (merchant_id, status, created_at, id) INCLUDE (currency_code);
CREATE INDEX ix_invoices_link ON invoices (link_id, status) WHERE link_id IS NOT NULL;
CREATE INDEX ix_invoices_waiting ON invoices (expires_at) WHERE status = 'pending' AND deal_id IS NULL;
CREATE UNIQUE INDEX uq_invoices_pending_customer ON invoices (merchant_id, customer_id) WHERE finished_at IS NULL;
CREATE INDEX ix_invoices_all ON invoices (created_at, id);
CREATE INDEX ix_invoices_amount ON invoices (amount, created_at, id);
"""
_REQUISITES = """
CREATE TABLE requisites (
  id uuid NOT NULL,
  method_code text NOT NULL,
  holder text NOT NULL,
  account text NOT NULL,
  bank text,
  max_deals integer NOT NULL,
  open_deals integer NOT NULL,
  enabled boolean NOT NULL,
  created_at timestamp with time zone NOT NULL,
  last_used_at timestamp with time zone,
  CONSTRAINT pk_requisites PRIMARY KEY (id),
  CONSTRAINT ck_requisites_max_deals CHECK (max_deals > 0),
  CONSTRAINT ck_requisites_open_deals CHECK (open_deals BETWEEN 0 AND max_deals)
);
CREATE INDEX ix_requisites_method ON requisites (method_code, created_at);
CREATE INDEX ix_requisites_account ON requisites (upper(regexp_replace(account, '[^[:alnum:]]', '', 'g')));
"""
_DEALS = """
CREATE TABLE deals (
  id uuid NOT NULL,
  invoice_id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  status text NOT NULL,
  sub_status text NOT NULL,
  method_code text NOT NULL,
  method_name text NOT NULL,
  currency_code text NOT NULL,
  currency_decimals integer NOT NULL,
  invoice_amount numeric(20, 2) NOT NULL,
  amount_fiat numeric(22, 2) NOT NULL,
  conversion_rate numeric(20, 2) NOT NULL,
  client_percent numeric(5, 2) NOT NULL,
  merchant_percent numeric(5, 2) NOT NULL,
  merchant_usdt numeric(38, 6),
  adjusted_amount numeric(20, 2),
  requisite_id uuid NOT NULL,
  created_at timestamp with time zone NOT NULL,
  expires_at timestamp with time zone NOT NULL,
  mark_paid_at timestamp with time zone,
  confirm_before timestamp with time zone,
  finished_at timestamp with time zone,
  reference text,
  takes_reference boolean NOT NULL DEFAULT false,
  sender_name text,
  sender_words text,
  rate_basis jsonb,
  seal bytea NOT NULL,
  CONSTRAINT pk_deals PRIMARY KEY (id),
  CONSTRAINT fk_deals_invoice_id FOREIGN KEY (invoice_id) REFERENCES invoices (id),
  CONSTRAINT fk_deals_requisite_id FOREIGN KEY (requisite_id) REFERENCES requisites (id),
  CONSTRAINT ck_deals_merchant_usdt CHECK ((status = 'completed') = (merchant_usdt IS NOT NULL)),
  CONSTRAINT ck_deals_finished_at CHECK ((status IN ('pending', 'appeal')) = (finished_at IS NULL)),
  CONSTRAINT ck_deals_adjustment CHECK ((sub_status = 'completed_with_adjustment') = (adjusted_amount IS NOT NULL)),
  CONSTRAINT ck_deals_status CHECK ((status, sub_status) IN (
    ('appeal', 'confirmation_overdue'), ('appeal', 'opened_by_customer'),
    ('appeal', 'opened_by_operator'), ('canceled', 'canceled_by_customer'),
    ('canceled', 'canceled_by_operator'), ('canceled', 'replaced'),
    ('completed', 'completed_with_adjustment'), ('completed', 'successfully_paid'),
    ('expired', 'payment_window_expired'), ('failed', 'appeal_rejected'),
    ('failed', 'rejected_by_operator'), ('pending', 'awaiting_confirmation'),
    ('pending', 'awaiting_payment')
  )),
  CONSTRAINT ck_deals_confirm_before CHECK ((mark_paid_at IS NULL) = (confirm_before IS NULL)),
  CONSTRAINT ck_deals_marked CHECK (
    mark_paid_at IS NULL OR (status NOT IN ('canceled', 'expired') AND sub_status <> 'awaiting_payment')
  ),
  CONSTRAINT ck_deals_adjusted_amount CHECK (adjusted_amount > 0 AND adjusted_amount < invoice_amount),
  CONSTRAINT ck_deals_amount_fiat CHECK (amount_fiat > 0),
  CONSTRAINT ck_deals_seal CHECK (octet_length(seal) = 32),
  CONSTRAINT ck_deals_conversion_rate CHECK (conversion_rate > 0),
  CONSTRAINT ck_deals_currency_decimals CHECK (currency_decimals BETWEEN 0 AND 2),
  CONSTRAINT ck_deals_reference CHECK (reference ~ '^[0-9A-HJKMNP-TV-Z]{8}$'),
  CONSTRAINT ck_deals_sender_name CHECK (
    char_length(sender_name) BETWEEN 1 AND 128 AND (sender_name IS NULL) = (sender_words IS NULL)
  ),
  CONSTRAINT ck_deals_rate_basis CHECK (
    jsonb_typeof(rate_basis) = 'object' AND octet_length(CAST(rate_basis AS text)) <= 131072
    AND jsonb_path_exists(rate_basis, 'strict $ ? (
      @.origin.type() == "string" && @.source_rate.type() == "string" && @.markup.type() == "string"
      && @.taken_at.type() == "string" && @.sources.type() == "array"
    )')
    AND NOT jsonb_path_exists(rate_basis, 'strict $.sources[*] ? (!exists (@ ? (
      @.source.type() == "string" && @.error.type() == "string"
      && (@.rate.type() == "string" || @.rate.type() == "null")
    )))', silent => true)
  )
);
CREATE INDEX ix_deals_invoice ON deals (invoice_id, created_at);
CREATE INDEX ix_deals_list ON deals (created_at, id);
CREATE INDEX ix_deals_list_status ON deals (status, created_at, id);
CREATE INDEX ix_deals_marked ON deals (confirm_before) WHERE sub_status = 'awaiting_confirmation';
CREATE INDEX ix_deals_unpaid ON deals (expires_at) WHERE sub_status = 'awaiting_payment';
CREATE UNIQUE INDEX uq_deals_open_invoice ON deals (invoice_id) WHERE status IN ('pending', 'appeal');
CREATE INDEX ix_deals_open_merchant ON deals (merchant_id, method_code) WHERE status IN ('pending', 'appeal');
CREATE INDEX ix_deals_amount ON deals (amount_fiat, created_at, id);
CREATE INDEX ix_deals_reference ON deals (reference);
CREATE UNIQUE INDEX uq_deals_open_reference ON deals (reference) WHERE status IN ('pending', 'appeal');
CREATE INDEX ix_deals_open_amount ON deals (requisite_id, amount_fiat) WHERE status IN ('pending', 'appeal');
CREATE UNIQUE INDEX uq_deals_open_amount ON deals (requisite_id, amount_fiat)
  WHERE status IN ('pending', 'appeal') AND NOT takes_reference;
CREATE INDEX ix_deals_sender ON deals USING gin (to_tsvector('simple'::regconfig, sender_words))
  WHERE sender_words IS NOT NULL;
CREATE INDEX ix_deals_first_amount ON deals ((
  ceil(invoice_amount * (100 + client_percent) * 0.01 * power(CAST(10 AS numeric), currency_decimals))
  / power(CAST(10 AS numeric), currency_decimals)
)) WHERE adjusted_amount IS NOT NULL;
"""
_DEAL_TRANSITIONS = """
CREATE TABLE deal_transitions (
  id bigint GENERATED ALWAYS AS IDENTITY,
  deal_id uuid NOT NULL,
  at timestamp with time zone NOT NULL,
  status text NOT NULL,
  sub_status text NOT NULL,
  actor text NOT NULL,
  note text NOT NULL,
  CONSTRAINT pk_deal_transitions PRIMARY KEY (id),
  CONSTRAINT fk_deal_transitions_deal_id FOREIGN KEY (deal_id) REFERENCES deals (id)
);
CREATE INDEX ix_deal_transitions_deal ON deal_transitions (deal_id, id);
CREATE INDEX ix_deal_transitions_at ON deal_transitions USING brin (at) WITH (autosummarize = on);
"""
_CASES = """
CREATE TABLE cases (
  number bigint GENERATED ALWAYS AS IDENTITY (START WITH 1001),
  invoice_id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  deal_id uuid NOT NULL,
  opened_at timestamp with time zone NOT NULL,
  note text NOT NULL,
  policy text NOT NULL,
  answer_by timestamp with time zone,
  line_id uuid,
  seal bytea NOT NULL,
  merchant_answer text,
  merchant_text text,
  answered_by text,
  answered_at timestamp with time zone,
  resolved_at timestamp with time zone,
  outcome text,
  actor text,
  ended_as text,
  CONSTRAINT pk_cases PRIMARY KEY (number),
  CONSTRAINT uq_cases_invoice_id UNIQUE (invoice_id),
  CONSTRAINT fk_cases_invoice_id FOREIGN KEY (invoice_id) REFERENCES invoices (id),
  CONSTRAINT fk_cases_deal_id FOREIGN KEY (deal_id) REFERENCES deals (id),
  CONSTRAINT ck_cases_outcome CHECK ((resolved_at IS NULL) = (outcome IS NULL)),
  CONSTRAINT ck_cases_actor CHECK ((resolved_at IS NULL) = (actor IS NULL)),
  CONSTRAINT ck_cases_ended CHECK ((resolved_at IS NULL) = (ended_as IS NULL)),
  CONSTRAINT ck_cases_ended_as CHECK (ended_as IN ('credit', 'return', 'answer_only')),
  CONSTRAINT ck_cases_policy CHECK (policy IN ('credit', 'return', 'ask_credit', 'ask_return')),
  CONSTRAINT ck_cases_merchant_answer CHECK (merchant_answer IN ('credit', 'return')),
  CONSTRAINT ck_cases_answered CHECK ((merchant_answer IS NULL) = (merchant_text IS NULL)
    AND (merchant_answer IS NULL) = (answered_by IS NULL) AND (merchant_answer IS NULL) = (answered_at IS NULL))
);
CREATE INDEX ix_cases_open ON cases (number) WHERE resolved_at IS NULL;
CREATE INDEX ix_cases_merchant ON cases (merchant_id, number);
"""
_PROOFS = """
CREATE TABLE proofs (
  deal_id uuid NOT NULL,
  kind text NOT NULL,
  content_type text NOT NULL,
  content bytea NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT pk_proofs PRIMARY KEY (deal_id, kind),
  CONSTRAINT fk_proofs_deal_id FOREIGN KEY (deal_id) REFERENCES deals (id),
  CONSTRAINT ck_proofs_kind CHECK (kind IN ('appeal', 'case')),
  CONSTRAINT ck_proofs_content CHECK (octet_length(content) BETWEEN 1 AND 5242880)
);
"""
_SWITCHES = """
CREATE TABLE switches (
  name text NOT NULL,
  enabled boolean NOT NULL,
  changed_at timestamp with time zone NOT NULL,
  actor text NOT NULL,
  CONSTRAINT pk_switches PRIMARY KEY (name)
);
"""
# A table of its own, without a foreign key: a second version of the invoice's row would cost the page ten times as much
# (docs/decisions/0027).
_PAGE_OPENINGS = """
CREATE TABLE page_openings (
  invoice_id uuid NOT NULL,
  at timestamp with time zone NOT NULL,
  CONSTRAINT pk_page_openings PRIMARY KEY (invoice_id)
);
"""
# Stored under the id of the event. Several rows may have one id: a row that an attacker adds can't block the true one.
_FACTS = """
CREATE TABLE facts (
  event_id uuid NOT NULL,
  signature text NOT NULL,
  payload bytea NOT NULL,
  CONSTRAINT pk_facts PRIMARY KEY (event_id, signature)
);
"""
_DAILY_SUMS = """
CREATE TABLE daily_sums (
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
);
"""
_DAILY_TIMES = """
CREATE TABLE daily_times (
  day date NOT NULL,
  merchant_id uuid NOT NULL,
  currency_code text COLLATE "C" NOT NULL,
  method_code text COLLATE "C" NOT NULL,
  span smallint NOT NULL,
  deals bigint NOT NULL,
  CONSTRAINT pk_daily_times PRIMARY KEY (day, merchant_id, currency_code, method_code, span)
);
"""
_DAILY_PLACE = """
CREATE TABLE daily_place (
  one boolean NOT NULL DEFAULT true,
  transition_id bigint NOT NULL,
  invoice_at timestamp with time zone NOT NULL,
  invoice_id uuid NOT NULL,
  summed_until timestamp with time zone NOT NULL,
  CONSTRAINT pk_daily_place PRIMARY KEY (one),
  CONSTRAINT ck_daily_place_one CHECK (one)
);
"""
# The outbox deletes its facts after some days; these stay, so that an invoice is announced again only as it once was.
# Announced again, a fact names the same event under a new id of the outbox: that copy would never be read.
_KEEP_FACTS = """
CREATE FUNCTION keep_fact() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
  INSERT INTO facts (event_id, signature, payload) VALUES (NEW.id, NEW.signature, NEW.payload) ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;

CREATE TRIGGER outbox_facts_are_kept AFTER INSERT ON outbox
  FOR EACH ROW
  WHEN (NEW.signature IS NOT NULL AND position(convert_to(NEW.id::text, 'UTF8') IN NEW.payload) > 0)
  EXECUTE FUNCTION keep_fact();
"""
_FROM_THE_START = """
INSERT INTO daily_place
VALUES (true, 0, '1970-01-01 00:00+00', '00000000-0000-0000-0000-000000000000', '1970-01-01 00:00+00');
"""
INVOICE_TERMS = (
    *("id", "merchant_id", "key_id", "external_id", "amount", "currency_code", "customer_id", "purpose"),
    *("callback_url", "success_url", "fail_url", "created_at", "expires_at", "seal", "link_id"),
    "merchant_data",
)
LINK_TERMS = (
    *("id", "merchant_id", "code", "amount", "currency_code"),
    *("purpose", "note", "created_at", "expires_at"),
)
REQUISITE_TERMS = ("id", "method_code", "holder", "account", "bank", "created_at")
DEAL_TERMS = (
    *("id", "invoice_id", "merchant_id", "method_code", "method_name", "currency_code"),
    *("currency_decimals", "invoice_amount", "conversion_rate", "client_percent", "merchant_percent"),
    *("requisite_id", "created_at", "expires_at", "reference", "takes_reference", "rate_basis"),
)
DEAL_NUMBERS = (
    *("invoice_amount", "amount_fiat", "conversion_rate", "client_percent", "merchant_percent"),
    *("merchant_usdt", "adjusted_amount"),
)
CASE_TERMS = (
    *("number", "invoice_id", "merchant_id", "deal_id", "opened_at", "note"),
    *("policy", "answer_by", "line_id", "seal"),
)


def upgrade() -> None:
    for table in (
        _LINKS,
        _INVOICES,
        _REQUISITES,
        _DEALS,
        _DEAL_TRANSITIONS,
        _CASES,
        _PROOFS,
        _SWITCHES,
        _PAGE_OPENINGS,
        LINE_PAYMENTS,
    ):
        op.execute(table)
    events.make_outbox()
    op.execute(_FACTS)
    op.execute(_KEEP_FACTS)
    for table in (_DAILY_SUMS, _DAILY_TIMES, _DAILY_PLACE):
        op.execute(table)
    op.execute(_FROM_THE_START)
    guards.make_refusal()
    guards.keep("invoices", INVOICE_TERMS, ended="finished_at")
    guards.stay("invoices")
    guards.keep("links", LINK_TERMS, ended="canceled_at")
    guards.stay("links")
    guards.keep("requisites", REQUISITE_TERMS)
    guards.stay("requisites")
    guards.keep("deals", DEAL_TERMS, ended="finished_at")
    guards.set_once("deals", ("sender_name", "sender_words", "mark_paid_at"))
    guards.stay("deals")
    guards.append_only("deal_transitions")
    # The role may own the table, so it has to give up these rights itself.
    op.execute("REVOKE UPDATE, DELETE, TRUNCATE ON deal_transitions FROM CURRENT_USER")
    guards.keep("cases", CASE_TERMS, ended="resolved_at")
    guards.set_once("cases", ("merchant_answer", "merchant_text", "answered_by", "answered_at"))
    guards.stay("cases")
    for table in ("proofs", "page_openings", "facts", "line_payments"):
        guards.append_only(table)
    acts.make_acts()
    approvals.make_approvals()
    guards.bound_values()
