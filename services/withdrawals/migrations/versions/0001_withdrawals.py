"""The ledger, withdrawal methods, withdrawals, address books"""

from alembic import op

from kit.db.migrations import acts, approvals, events, guards

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_ACCOUNTS = """
CREATE TABLE accounts (
  id integer GENERATED ALWAYS AS IDENTITY,
  kind text NOT NULL,
  merchant_id uuid,
  balance numeric(38, 6),
  CONSTRAINT pk_accounts PRIMARY KEY (id),
  CONSTRAINT uq_accounts_merchant_id_kind UNIQUE NULLS NOT DISTINCT (merchant_id, kind),
  CONSTRAINT ck_accounts_kind CHECK (
    kind IN ('merchant_available', 'merchant_reserved', 'merchant_owed', 'settlement', 'paid_out', 'fees')
  ),
  CONSTRAINT ck_accounts_merchant_id CHECK (
    (kind IN ('merchant_available', 'merchant_reserved', 'merchant_owed')) = (merchant_id IS NOT NULL)
  ),
  CONSTRAINT ck_accounts_balance CHECK ((merchant_id IS NULL) = (balance IS NULL)),
  CONSTRAINT ck_accounts_balance_not_negative CHECK (balance >= 0)
);
CREATE INDEX ix_accounts_owed ON accounts (balance) WHERE kind = 'merchant_owed' AND balance > 0;
"""
_TRANSFERS = """
CREATE TABLE transfers (
  id uuid NOT NULL,
  reference text COLLATE "C" NOT NULL,
  debit_account integer NOT NULL,
  credit_account integer NOT NULL,
  amount numeric(38, 6) NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_transfers PRIMARY KEY (id),
  CONSTRAINT uq_transfers_reference UNIQUE (reference),
  CONSTRAINT fk_transfers_debit_account FOREIGN KEY (debit_account) REFERENCES accounts (id),
  CONSTRAINT fk_transfers_credit_account FOREIGN KEY (credit_account) REFERENCES accounts (id),
  CONSTRAINT ck_transfers_amount CHECK (amount > 0),
  CONSTRAINT ck_transfers_accounts CHECK (debit_account <> credit_account),
  CONSTRAINT ck_transfers_reference CHECK (
    reference ~ replace('^(invoice:ID|withdrawal:ID:(reserve|pay|fee|release)|correction:ID|correction:ID:owed'
      '|refund:ID:(reserve|pay|release)|debt:(invoice:ID|correction:ID|(withdrawal|refund):ID:release))$',
      'ID', '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')
  )
);
CREATE INDEX ix_transfers_credit ON transfers (credit_account, created_at, id) INCLUDE (amount);
CREATE INDEX ix_transfers_debit ON transfers (debit_account, created_at, id) INCLUDE (amount)
  WHERE reference < 'invoice:' OR reference >= 'invoice;';
"""
_WITHDRAWAL_METHODS = """
CREATE TABLE withdrawal_methods (
  id integer NOT NULL,
  code text NOT NULL,
  network text NOT NULL,
  name text NOT NULL,
  network_fee numeric(38, 6) NOT NULL,
  min_amount numeric(38, 6) NOT NULL,
  memo_allowed boolean NOT NULL,
  enabled boolean NOT NULL,
  CONSTRAINT pk_withdrawal_methods PRIMARY KEY (id),
  CONSTRAINT uq_withdrawal_methods_code UNIQUE (code),
  CONSTRAINT ck_withdrawal_methods_network CHECK (network IN ('BEP20', 'ERC20', 'POLYGON', 'TON', 'TRC20')),
  CONSTRAINT ck_withdrawal_methods_min_amount CHECK (network_fee >= 0 AND min_amount > network_fee)
);
"""
_WITHDRAWALS = """
CREATE TABLE withdrawals (
  id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  request_key uuid NOT NULL,
  method_id integer NOT NULL,
  network text NOT NULL,
  address text NOT NULL,
  address_memo text,
  amount numeric(38, 6) NOT NULL,
  network_fee numeric(38, 6) NOT NULL,
  status text NOT NULL,
  substatus text,
  external_tx_id text,
  created_at timestamp with time zone NOT NULL,
  updated_at timestamp with time zone NOT NULL,
  processed_at timestamp with time zone,
  CONSTRAINT pk_withdrawals PRIMARY KEY (id),
  CONSTRAINT uq_withdrawals_request_key UNIQUE (request_key),
  CONSTRAINT uq_withdrawals_network_external_tx_id UNIQUE (network, external_tx_id),
  CONSTRAINT fk_withdrawals_method_id FOREIGN KEY (method_id) REFERENCES withdrawal_methods (id),
  CONSTRAINT ck_withdrawals_status CHECK (
    (status, coalesce(substatus, 'none')) IN (
      ('pending', 'none'), ('pending', 'processing'), ('success', 'none'),
      ('failed', 'failed'), ('failed', 'invalid_address'), ('failed', 'unknown'),
      ('cancelled', 'cancelled_by_user'), ('cancelled', 'cancelled_by_admin')
    )
  ),
  CONSTRAINT ck_withdrawals_external_tx_id CHECK ((status = 'success') = (external_tx_id IS NOT NULL)),
  CONSTRAINT ck_withdrawals_processed_at CHECK ((status = 'pending') = (processed_at IS NULL)),
  CONSTRAINT ck_withdrawals_amount CHECK (network_fee >= 0 AND amount > network_fee)
);
CREATE INDEX ix_withdrawals_list ON withdrawals (merchant_id, created_at, id);
CREATE INDEX ix_withdrawals_list_status ON withdrawals (merchant_id, status, created_at, id);
CREATE INDEX ix_withdrawals_status ON withdrawals (status, id);
CREATE INDEX ix_withdrawals_transaction ON withdrawals (network, lower(external_tx_id));
CREATE INDEX ix_withdrawals_all ON withdrawals (created_at, id);
CREATE INDEX ix_withdrawals_all_status ON withdrawals (status, created_at, id);
CREATE INDEX ix_withdrawals_method ON withdrawals (method_id, created_at, id);
CREATE INDEX ix_withdrawals_address ON withdrawals (lower(address), created_at, id);
CREATE INDEX ix_withdrawals_amount ON withdrawals (amount, created_at, id);
"""
_CORRECTIONS = """
CREATE TABLE corrections (
  id uuid NOT NULL,
  kind text NOT NULL,
  merchant_id uuid NOT NULL,
  invoice_id uuid,
  case_number bigint,
  amount numeric(38, 6) NOT NULL,
  owed numeric(38, 6) NOT NULL,
  received_amount numeric(20, 2), currency_code text, conversion_rate numeric(20, 2),
  reason text NOT NULL, evidence text NOT NULL,
  request_key uuid NOT NULL,
  created_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_corrections PRIMARY KEY (id),
  CONSTRAINT uq_corrections_request_key UNIQUE (request_key),
  CONSTRAINT ck_corrections_kind CHECK (
    kind IN ('reversal', 'late_credit', 'surplus', 'manual_credit', 'manual_debit')
  ),
  CONSTRAINT ck_corrections_amount CHECK (amount > 0),
  CONSTRAINT ck_corrections_owed CHECK (
    owed BETWEEN 0 AND amount AND (owed = 0 OR kind IN ('reversal', 'manual_debit'))
  ),
  CONSTRAINT ck_corrections_invoice_id CHECK ((kind LIKE 'manual%') = (invoice_id IS NULL)),
  CONSTRAINT ck_corrections_received_amount CHECK (
    CASE WHEN kind IN ('late_credit', 'surplus') THEN
      received_amount > 0 AND conversion_rate > 0 AND currency_code IS NOT NULL
    ELSE num_nonnulls(received_amount, conversion_rate, currency_code) = 0 END
  ),
  CONSTRAINT ck_corrections_case_number CHECK (case_number IS NULL OR kind = 'late_credit')
);
CREATE INDEX ix_corrections_list ON corrections (created_at, id);
CREATE INDEX ix_corrections_merchant ON corrections (merchant_id, created_at, id);
CREATE INDEX ix_corrections_invoice ON corrections (invoice_id);
CREATE INDEX ix_corrections_evidence ON corrections (translate(lower(evidence), ' -./_:', ''));
"""
_REFUNDS = """
CREATE TABLE refunds (
  id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  invoice_id uuid NOT NULL,
  external_id text NOT NULL, origin text NOT NULL, case_number bigint,
  refund_amount numeric(20, 2) NOT NULL, currency_code text NOT NULL,
  amount numeric(38, 6) NOT NULL,
  conversion_rate numeric(20, 2) NOT NULL,
  reason text NOT NULL,
  status text NOT NULL,
  account_kind text, account text, holder text, bank text,
  account_by_customer boolean NOT NULL, bank_reference text, failure text,
  created_at timestamp with time zone NOT NULL, updated_at timestamp with time zone NOT NULL,
  finished_at timestamp with time zone,
  CONSTRAINT pk_refunds PRIMARY KEY (id),
  CONSTRAINT uq_refunds_external_id UNIQUE (merchant_id, external_id),
  CONSTRAINT ck_refunds_origin CHECK (origin IN ('credited', 'late', 'surplus')),
  CONSTRAINT ck_refunds_amount CHECK (refund_amount > 0 AND (amount > 0) = (origin = 'credited') AND amount >= 0),
  CONSTRAINT ck_refunds_status CHECK (
    status IN ('waiting_for_account', 'ready', 'sent', 'succeeded', 'failed', 'canceled')
  ),
  CONSTRAINT ck_refunds_account CHECK (
    num_nonnulls(account_kind, account, holder) IN (0, 3)
    AND (status NOT IN ('ready', 'sent', 'succeeded') OR account IS NOT NULL)
    AND (status <> 'waiting_for_account' OR account IS NULL)
  ),
  CONSTRAINT ck_refunds_bank_reference CHECK (
    (status <> 'succeeded' OR bank_reference IS NOT NULL)
    AND (bank_reference IS NULL OR status IN ('sent', 'succeeded', 'failed'))
  ),
  CONSTRAINT ck_refunds_failure CHECK ((status = 'failed') = (failure IS NOT NULL)),
  CONSTRAINT ck_refunds_finished_at CHECK ((status IN ('succeeded', 'failed', 'canceled')) = (finished_at IS NOT NULL))
);
CREATE INDEX ix_refunds_list ON refunds (created_at, id);
CREATE INDEX ix_refunds_status ON refunds (status, created_at, id);
CREATE INDEX ix_refunds_merchant ON refunds (merchant_id, created_at, id);
CREATE INDEX ix_refunds_invoice ON refunds (invoice_id);
CREATE INDEX ix_refunds_external_id ON refunds (external_id);
CREATE INDEX ix_refunds_bank_reference ON refunds (translate(lower(bank_reference), ' -./_:', ''));
CREATE UNIQUE INDEX uq_refunds_bank_reference ON refunds (translate(lower(bank_reference), ' -./_:', ''))
  WHERE status IN ('sent', 'succeeded');
CREATE INDEX ix_refunds_open ON refunds (status, updated_at) WHERE status IN ('waiting_for_account', 'ready', 'sent');
"""
_DAILY_BALANCES = """
CREATE TABLE daily_balances (
  account integer NOT NULL,
  day date NOT NULL,
  balance numeric(38, 6) NOT NULL,
  CONSTRAINT pk_daily_balances PRIMARY KEY (account, day)
);
"""
_CREDITS_OF_OTHER_DAYS = """
CREATE TABLE credits_of_other_days (
  invoice_id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  amount numeric(38, 6) NOT NULL,
  paid_at timestamp with time zone NOT NULL,
  credited_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_credits_of_other_days PRIMARY KEY (invoice_id),
  CONSTRAINT ck_credits_of_other_days_amount CHECK (amount > 0)
);
CREATE INDEX ix_credits_of_other_days_merchant ON credits_of_other_days (merchant_id, paid_at);
"""
_WITHDRAWAL_ADDRESSES = """
CREATE TABLE withdrawal_addresses (
  id uuid NOT NULL,
  merchant_id uuid NOT NULL,
  method_id integer NOT NULL,
  network text NOT NULL,
  address text NOT NULL,
  address_memo text,
  name text NOT NULL,
  added_by text NOT NULL,
  created_at timestamp with time zone NOT NULL,
  usable_at timestamp with time zone NOT NULL,
  removed_at timestamp with time zone,
  CONSTRAINT pk_withdrawal_addresses PRIMARY KEY (id),
  CONSTRAINT ck_withdrawal_addresses_usable_at CHECK (usable_at >= created_at),
  CONSTRAINT ck_withdrawal_addresses_removed_at CHECK (removed_at >= created_at)
);
CREATE UNIQUE INDEX uq_withdrawal_addresses_current
  ON withdrawal_addresses (merchant_id, method_id, address, coalesce(address_memo, '')) WHERE removed_at IS NULL;
CREATE INDEX ix_withdrawal_addresses_merchant ON withdrawal_addresses (merchant_id, created_at);
"""
_ADDRESS_NOTICES = """
CREATE TABLE address_notices (
  address_id uuid NOT NULL,
  due_at timestamp with time zone NOT NULL,
  CONSTRAINT pk_address_notices PRIMARY KEY (address_id)
);
"""
# Runs with its owner's rights: the service's role has no right to change a balance.
_MOVE_BALANCES = """
CREATE FUNCTION fits_its_reference(moved transfers, debit accounts, credit accounts) RETURNS boolean
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, public AS $$
DECLARE
  step text := split_part(moved.reference, ':', 3);
  of_id uuid := CAST(split_part(moved.reference, ':', 2) AS uuid);
  sent withdrawals;
  refund refunds;
  made corrections;
  merchant uuid; due numeric; kinds text;
BEGIN
  CASE split_part(moved.reference, ':', 1)
    WHEN 'withdrawal' THEN
      SELECT * INTO sent FROM withdrawals WHERE id = of_id
        AND CASE step WHEN 'reserve' THEN true WHEN 'release' THEN status IN ('failed', 'cancelled')
          ELSE status = 'success' END;
      merchant := sent.merchant_id;
      due := CASE step WHEN 'pay' THEN sent.amount - sent.network_fee WHEN 'fee' THEN sent.network_fee
        ELSE sent.amount END;
      kinds := CASE step WHEN 'reserve' THEN 'merchant_available merchant_reserved'
        WHEN 'pay' THEN 'merchant_reserved paid_out' WHEN 'fee' THEN 'merchant_reserved fees'
        ELSE 'merchant_reserved merchant_available' END;
    WHEN 'refund' THEN
      SELECT * INTO refund FROM refunds WHERE id = of_id
        AND CASE step WHEN 'reserve' THEN true WHEN 'release' THEN status IN ('failed', 'canceled')
          ELSE status = 'succeeded' END;
      merchant := refund.merchant_id;
      due := refund.amount;
      kinds := CASE step WHEN 'reserve' THEN 'merchant_available merchant_reserved'
        WHEN 'pay' THEN 'merchant_reserved settlement' ELSE 'merchant_reserved merchant_available' END;
    ELSE
      SELECT * INTO made FROM corrections WHERE id = of_id AND (kind <> 'reversal' OR (
        SELECT sum(CASE kind WHEN 'reversal' THEN amount ELSE -amount END) FROM corrections AS others
        WHERE others.invoice_id = corrections.invoice_id
      ) <= coalesce((SELECT amount FROM transfers WHERE reference = 'invoice:' || corrections.invoice_id), 0));
      merchant := made.merchant_id;
      due := CASE step WHEN 'owed' THEN made.owed ELSE made.amount - made.owed END;
      kinds := CASE WHEN step = 'owed' THEN 'merchant_owed settlement'
        WHEN made.kind IN ('reversal', 'manual_debit') THEN 'merchant_available settlement'
        ELSE 'settlement merchant_available' END;
  END CASE;
  RETURN merchant = coalesce(debit.merchant_id, credit.merchant_id) AND due = moved.amount
    AND kinds = debit.kind || ' ' || credit.kind AND (debit.kind <> 'merchant_reserved'
      OR EXISTS (SELECT FROM transfers WHERE reference = regexp_replace(moved.reference, '[a-z]+$', 'reserve')));
END $$;

CREATE FUNCTION move_balances() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, public AS $$
DECLARE
  debit accounts;
  credit accounts;
  owes accounts;
BEGIN
  SELECT * INTO debit FROM accounts WHERE id = NEW.debit_account;
  SELECT * INTO credit FROM accounts WHERE id = NEW.credit_account;
  IF NOT coalesce(CASE
    WHEN debit.merchant_id <> credit.merchant_id THEN false
    WHEN NEW.reference LIKE 'invoice:%' THEN debit.kind = 'settlement' AND credit.kind = 'merchant_available'
    -- Only the end of this function pays a debt.
    WHEN NEW.reference LIKE 'debt:%' THEN pg_trigger_depth() > 1
    ELSE fits_its_reference(NEW, debit, credit) END, false)
  THEN
    RAISE EXCEPTION 'INSERT of transfers is refused: % is no credit of an invoice and no step of a withdrawal'
      ', a refund or a correction', NEW.reference USING ERRCODE = 'insufficient_privilege';
  END IF;
  -- The smaller id first, always: two transfers in opposite directions would otherwise wait for each other.
  PERFORM FROM accounts
    WHERE id IN (NEW.debit_account, NEW.credit_account) AND balance IS NOT NULL
    ORDER BY id FOR NO KEY UPDATE;
  -- What a merchant owes grows when it is debited; all other accounts shrink.
  UPDATE accounts SET balance = balance + CASE kind WHEN 'merchant_owed' THEN NEW.amount ELSE -NEW.amount END
    WHERE id = NEW.debit_account AND balance IS NOT NULL;
  UPDATE accounts SET balance = balance + CASE kind WHEN 'merchant_owed' THEN -NEW.amount ELSE NEW.amount END
    WHERE id = NEW.credit_account AND balance IS NOT NULL;
  IF credit.kind = 'merchant_available' THEN
    SELECT * INTO owes FROM accounts
      WHERE merchant_id = credit.merchant_id AND kind = 'merchant_owed' AND balance > 0 FOR NO KEY UPDATE;
    IF FOUND THEN
      -- The next id, so that a statement has it right after the money that pays.
      INSERT INTO transfers (id, reference, debit_account, credit_account, amount, created_at)
      SELECT CAST(left(CAST(NEW.id AS text), 24) || lpad(to_hex((1 + CAST(
          CAST('x' || right(CAST(NEW.id AS text), 12) AS bit(48)) AS bigint)) & 281474976710655), 12, '0') AS uuid),
        'debt:' || NEW.reference, id, owes.id, least(balance, owes.balance), NEW.created_at
      FROM accounts WHERE id = NEW.credit_account AND balance > 0;
    END IF;
  END IF;
  RETURN NULL;
END $$;

-- A row lock needs a right to change, which the service's role does not have.
CREATE FUNCTION lock_accounts(merchant uuid) RETURNS SETOF numeric LANGUAGE sql
SECURITY DEFINER SET search_path = pg_catalog, public AS $$
  SELECT balance FROM accounts WHERE merchant_id = merchant ORDER BY id FOR NO KEY UPDATE
$$;

CREATE TRIGGER transfers_move_balances AFTER INSERT ON transfers
  FOR EACH ROW EXECUTE FUNCTION move_balances();
"""
# Two guards: the grants stop the service, the triggers also stop a superuser's mistake.
_APPEND_ONLY = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% of % is refused: the ledger is append-only, correct it with a further transfer',
    TG_OP, TG_TABLE_NAME USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER transfers_are_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON transfers
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
REVOKE UPDATE, DELETE, TRUNCATE ON transfers FROM CURRENT_USER;

-- Inside move_balances the depth is above zero; a balance moves in no other way.
CREATE TRIGGER balances_move_by_transfer BEFORE UPDATE ON accounts
  FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION refuse_change();
CREATE TRIGGER accounts_stay BEFORE DELETE OR TRUNCATE ON accounts
  FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER accounts_open_empty BEFORE INSERT ON accounts
  FOR EACH ROW WHEN (NEW.balance <> 0) EXECUTE FUNCTION refuse_change();
"""
_SYSTEM_ACCOUNTS = "INSERT INTO accounts (kind) VALUES ('settlement'), ('paid_out'), ('fees')"
_FIRST_METHODS = """
INSERT INTO withdrawal_methods (id, code, network, name, network_fee, min_amount, memo_allowed, enabled) VALUES
  (1, 'USDT-TRC20', 'TRC20', 'USDT on Tron', 1, 5, false, true),
  (2, 'USDT-ERC20', 'ERC20', 'USDT on Ethereum', 5, 20, false, true),
  (3, 'USDT-TON', 'TON', 'USDT on TON', 0.5, 2, true, true),
  (4, 'USDT-BEP20', 'BEP20', 'USDT on BNB Smart Chain', 0.5, 5, false, true),
  (5, 'USDT-POLYGON', 'POLYGON', 'USDT on Polygon', 0.5, 5, false, true)
"""
WITHDRAWAL_TERMS = (
    "id, merchant_id, request_key, method_id, network, address, address_memo, amount, network_fee, created_at"
)
ADDRESS_TERMS = (
    "id, merchant_id, method_id, network, address, address_memo, name, added_by, created_at, usable_at"
)
REFUND_TERMS = (
    "id, merchant_id, invoice_id, external_id, origin, case_number, refund_amount, currency_code, amount,"
    " conversion_rate, reason, created_at"
)


def upgrade() -> None:
    for step in (_ACCOUNTS, _TRANSFERS, _WITHDRAWAL_METHODS, _FIRST_METHODS, _WITHDRAWALS):
        op.execute(step)
    for step in (_CORRECTIONS, _REFUNDS, _MOVE_BALANCES, _APPEND_ONLY, _SYSTEM_ACCOUNTS):
        op.execute(step)
    for step in (_DAILY_BALANCES, _CREDITS_OF_OTHER_DAYS, _WITHDRAWAL_ADDRESSES, _ADDRESS_NOTICES):
        op.execute(step)
    guards.make_refusal()
    guards.keep("withdrawals", WITHDRAWAL_TERMS.split(", "), ended="processed_at")
    guards.stay("withdrawals")
    guards.stay("withdrawal_methods")
    guards.append_only("corrections")
    guards.keep("refunds", REFUND_TERMS.split(", "), ended="finished_at")
    guards.set_once("refunds", ("account_kind", "account", "holder", "bank"))
    guards.stay("refunds")
    guards.keep("withdrawal_addresses", ADDRESS_TERMS.split(", "), ended="removed_at")
    guards.stay("withdrawal_addresses")
    events.make_inbox()
    acts.make_acts()
    approvals.make_approvals()
    guards.bound_values()
