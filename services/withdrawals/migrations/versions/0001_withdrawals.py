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
    kind IN ('merchant_available', 'merchant_reserved', 'settlement', 'paid_out', 'fees')
  ),
  CONSTRAINT ck_accounts_merchant_id CHECK (
    (kind IN ('merchant_available', 'merchant_reserved')) = (merchant_id IS NOT NULL)
  ),
  CONSTRAINT ck_accounts_balance CHECK ((merchant_id IS NULL) = (balance IS NULL)),
  CONSTRAINT ck_accounts_balance_not_negative CHECK (balance >= 0)
);
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
    reference ~ ('^(invoice:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'
      '|withdrawal:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:(reserve|pay|fee|release))$')
  )
);
CREATE INDEX ix_transfers_credit ON transfers (credit_account, created_at, id) INCLUDE (amount);
CREATE INDEX ix_transfers_debit ON transfers (debit_account, created_at, id) INCLUDE (amount)
  WHERE reference >= 'withdrawal:';
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
CREATE FUNCTION move_balances() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, public AS $$
BEGIN
  IF NOT EXISTS (
    SELECT FROM accounts AS debit
    JOIN accounts AS credit ON credit.id = NEW.credit_account
    LEFT JOIN withdrawals AS sent ON sent.id =
      CASE WHEN NEW.reference LIKE 'withdrawal:%' THEN CAST(substr(NEW.reference, 12, 36) AS uuid) END
    WHERE debit.id = NEW.debit_account
      AND (sent.id IS NULL OR sent.merchant_id = ALL (
        array_remove(ARRAY[debit.merchant_id, credit.merchant_id], NULL)))
      AND CASE split_part(NEW.reference, ':', 3)
        WHEN '' THEN (debit.kind, credit.kind) = ('settlement', 'merchant_available')
        WHEN 'reserve' THEN (debit.kind, credit.kind, NEW.amount) =
          ('merchant_available', 'merchant_reserved', sent.amount)
        WHEN 'pay' THEN (debit.kind, credit.kind, NEW.amount, sent.status) =
          ('merchant_reserved', 'paid_out', sent.amount - sent.network_fee, 'success')
        WHEN 'fee' THEN (debit.kind, credit.kind, NEW.amount, sent.status) =
          ('merchant_reserved', 'fees', sent.network_fee, 'success')
        WHEN 'release' THEN (debit.kind, credit.kind, NEW.amount) =
          ('merchant_reserved', 'merchant_available', sent.amount) AND sent.status IN ('failed', 'cancelled')
      END
  ) THEN
    RAISE EXCEPTION 'INSERT of transfers is refused: % is no credit of an invoice and no step of a withdrawal',
      NEW.reference USING ERRCODE = 'insufficient_privilege';
  END IF;
  -- The smaller id first, always: two transfers in opposite directions would otherwise wait for each other.
  PERFORM FROM accounts
    WHERE id IN (NEW.debit_account, NEW.credit_account) AND balance IS NOT NULL
    ORDER BY id FOR NO KEY UPDATE;
  UPDATE accounts SET balance = balance - NEW.amount WHERE id = NEW.debit_account AND balance IS NOT NULL;
  UPDATE accounts SET balance = balance + NEW.amount WHERE id = NEW.credit_account AND balance IS NOT NULL;
  RETURN NULL;
END $$;

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
    "id",
    "merchant_id",
    "request_key",
    "method_id",
    "network",
    "address",
    "address_memo",
    "amount",
    "network_fee",
    "created_at",
)
ADDRESS_TERMS = (
    "id",
    "merchant_id",
    "method_id",
    "network",
    "address",
    "address_memo",
    "name",
    "added_by",
    "created_at",
    "usable_at",
)


def upgrade() -> None:
    for step in (_ACCOUNTS, _TRANSFERS, _MOVE_BALANCES, _APPEND_ONLY, _SYSTEM_ACCOUNTS):
        op.execute(step)
    for step in (_WITHDRAWAL_METHODS, _FIRST_METHODS, _WITHDRAWALS):
        op.execute(step)
    for step in (_DAILY_BALANCES, _CREDITS_OF_OTHER_DAYS, _WITHDRAWAL_ADDRESSES, _ADDRESS_NOTICES):
        op.execute(step)
    guards.make_refusal()
    guards.keep("withdrawals", WITHDRAWAL_TERMS, ended="processed_at")
    guards.stay("withdrawals")
    guards.stay("withdrawal_methods")
    guards.keep("withdrawal_addresses", ADDRESS_TERMS, ended="removed_at")
    guards.stay("withdrawal_addresses")
    events.make_inbox()
    acts.make_acts()
    approvals.make_approvals()
    guards.bound_values()
