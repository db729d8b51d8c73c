"""The tables of the bank lines that have paid deals and of the rules by which they do, for the first migration."""

LINE_PAYMENTS = """
CREATE TABLE line_payments (
  number bigint GENERATED ALWAYS AS IDENTITY,
  line_id uuid NOT NULL,
  deal_id uuid NOT NULL,
  amount numeric(22, 2) NOT NULL,
  line_amount numeric(22, 2) NOT NULL,
  paid_at timestamp with time zone NOT NULL,
  rule text,
  CONSTRAINT pk_line_payments PRIMARY KEY (number),
  CONSTRAINT uq_line_payments_line_id_deal_id UNIQUE (line_id, deal_id),
  CONSTRAINT fk_line_payments_deal_id FOREIGN KEY (deal_id) REFERENCES deals (id),
  CONSTRAINT ck_line_payments_amount CHECK (amount > 0 AND amount <= line_amount)
);
CREATE INDEX ix_line_payments_deal ON line_payments (deal_id);
CREATE INDEX ix_line_payments_rule ON line_payments (rule, paid_at) WHERE rule IS NOT NULL;

CREATE TABLE line_rules (
  method_code text NOT NULL,
  currency_code text NOT NULL,
  enabled boolean NOT NULL,
  deal_most numeric(22, 2) NOT NULL,
  day_most numeric(22, 2) NOT NULL,
  changed_at timestamp with time zone NOT NULL,
  actor text NOT NULL,
  CONSTRAINT pk_line_rules PRIMARY KEY (method_code),
  CONSTRAINT ck_line_rules_limits CHECK (deal_most > 0 AND deal_most <= day_most)
);

-- One after the other until the commit: a line is counted whole. The service calls it before it inserts, so that
-- numbers are committed in their order.
CREATE FUNCTION lock_line_payments() RETURNS void LANGUAGE sql AS $$
  SELECT pg_advisory_xact_lock(hashtextextended('line-payments', 0))
$$;
CREATE FUNCTION line_pays_once() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  earlier record;
BEGIN
  PERFORM lock_line_payments();
  SELECT coalesce(sum(amount), 0) AS amount, min(line_amount) AS least, max(line_amount) AS most INTO earlier
    FROM line_payments WHERE line_id = NEW.line_id;
  IF earlier.amount + NEW.amount > NEW.line_amount
      OR NEW.line_amount <> coalesce(earlier.least, NEW.line_amount)
      OR NEW.line_amount <> coalesce(earlier.most, NEW.line_amount) THEN
    RAISE EXCEPTION 'line % has % left', NEW.line_id, NEW.line_amount - earlier.amount
      USING ERRCODE = 'check_violation', CONSTRAINT = 'line_pays_once';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER line_pays_once BEFORE INSERT ON line_payments FOR EACH ROW EXECUTE FUNCTION line_pays_once();
"""
