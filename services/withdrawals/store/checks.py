"""Faults in the books: each query returns the rows that should not exist.

Written apart from the code that moves the money, so that a mistake there is not repeated here.
"""

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from kit.db.database import bound_statements
from services.withdrawals.store.views import Totals, WrongBalance, WrongCredit, WrongDay, WrongWithdrawal

# These queries read the whole ledger. They may take longer than any other statement, but not without a limit.
STATEMENT_TIMEOUT_SECONDS = 60


def begin_snapshot(tx: Session) -> None:
    """Makes the whole transaction see the database at one moment. Call it first."""
    tx.connection(execution_options={"isolation_level": "REPEATABLE READ"})


def allow_long_statements(tx: Session) -> None:
    """For the check of the whole ledger only: calls of people keep the usual limit, because payouts take turns with
    them.
    """
    bound_statements(tx, seconds=STATEMENT_TIMEOUT_SECONDS)


_MOVED = """
moved AS (
  SELECT account, sum(amount) AS balance
  FROM (SELECT credit_account AS account, amount FROM transfers
        UNION ALL SELECT debit_account, -amount FROM transfers) AS legs
  GROUP BY account
)
"""

_TOTALS = text(f"""
WITH {_MOVED}
SELECT (SELECT count(*) FROM transfers) AS transfers,
       count(*) AS accounts,
       coalesce(sum(coalesce(CASE kind WHEN 'merchant_owed' THEN -accounts.balance ELSE accounts.balance END,
                             moved.balance)), 0) AS sum
FROM accounts LEFT JOIN moved ON moved.account = accounts.id
""")  # noqa: S608  made of constants


def totals(tx: Session) -> Totals:
    return Totals(*tx.execute(_TOTALS).one())


_WRONG_BALANCES = text(f"""
WITH {_MOVED}
SELECT accounts.id, kind, merchant_id, accounts.balance, due.balance
FROM accounts LEFT JOIN moved ON moved.account = accounts.id
CROSS JOIN LATERAL (
  SELECT coalesce(moved.balance, 0) * CASE kind WHEN 'merchant_owed' THEN -1 ELSE 1 END AS balance
) AS due
WHERE accounts.balance <> due.balance
ORDER BY accounts.id LIMIT :limit
""")  # noqa: S608  made of constants


def wrong_balances(tx: Session, *, limit: int) -> Sequence[WrongBalance]:
    return [WrongBalance(*row) for row in tx.execute(_WRONG_BALANCES, {"limit": limit})]


_WRONG_DAYS = text("""
WITH moved AS (
  SELECT account, day, sum(amount) AS amount
  FROM (SELECT credit_account AS account, CAST(created_at AT TIME ZONE 'UTC' AS date) AS day, amount FROM transfers
        UNION ALL
        SELECT debit_account, CAST(created_at AT TIME ZONE 'UTC' AS date), -amount FROM transfers) AS legs
  GROUP BY account, day
), due AS (
  SELECT account, day, sum(amount) OVER (PARTITION BY account ORDER BY day) AS balance FROM moved
)
SELECT DISTINCT ON (merchant_id IS NULL, accounts.id)
       accounts.id, kind, merchant_id, day, ends.balance, coalesce(due.balance, 0)
FROM daily_balances AS ends LEFT JOIN due USING (account, day) JOIN accounts ON accounts.id = account
WHERE ends.balance IS DISTINCT FROM due.balance
ORDER BY merchant_id IS NULL, accounts.id, day LIMIT :limit
""")


def wrong_days(tx: Session, *, limit: int) -> Sequence[WrongDay]:
    """Returns the first wrong day of each account, merchants' first."""
    return [WrongDay(*row) for row in tx.execute(_WRONG_DAYS, {"limit": limit})]


_WRONG_OTHER_DAYS = text("""
SELECT invoice_id, kept.amount
FROM credits_of_other_days AS kept
LEFT JOIN transfers ON reference = 'invoice:' || invoice_id
LEFT JOIN accounts ON accounts.id = credit_account
WHERE (transfers.amount, accounts.merchant_id, created_at) IS DISTINCT FROM
      (kept.amount, kept.merchant_id, credited_at)
ORDER BY kept.amount DESC LIMIT :limit
""")


def wrong_other_days(tx: Session, *, limit: int) -> Sequence[tuple[UUID, Decimal]]:
    return [(invoice_id, amount) for invoice_id, amount in tx.execute(_WRONG_OTHER_DAYS, {"limit": limit})]


_WRONG_CREDITS = text("""
SELECT reference, debit.kind AS debit, credit.kind AS credit
FROM transfers
JOIN accounts AS debit ON debit.id = debit_account
JOIN accounts AS credit ON credit.id = credit_account
WHERE reference >= 'invoice:' AND reference < 'invoice;'
  AND (debit.kind, credit.kind) <> ('settlement', 'merchant_available')
LIMIT :limit
""")  # unordered: for an order PostgreSQL would walk the index, ten times slower


def wrong_credits(tx: Session, *, limit: int) -> Sequence[WrongCredit]:
    return [WrongCredit(*row) for row in tx.execute(_WRONG_CREDITS, {"limit": limit})]


_WRONG_CORRECTIONS = text("""
WITH due AS (
  SELECT leg.reference, merchant_id, leg.debit, leg.credit, leg.amount
  FROM corrections
  CROSS JOIN LATERAL (VALUES
    ('correction:' || id, 'settlement', 'merchant_available', amount, kind NOT IN ('reversal', 'manual_debit')),
    ('correction:' || id, 'merchant_available', 'settlement', amount - owed, kind IN ('reversal', 'manual_debit')),
    ('correction:' || id || '\\:owed', 'merchant_owed', 'settlement', owed, kind IN ('reversal', 'manual_debit'))
  ) AS leg (reference, debit, credit, amount, due)
  WHERE leg.due AND leg.amount > 0
), done AS (
  SELECT reference, debit.kind AS debit, credit.kind AS credit, amount,
         coalesce(debit.merchant_id, credit.merchant_id) AS merchant
  FROM transfers
  JOIN accounts AS debit ON debit.id = debit_account
  JOIN accounts AS credit ON credit.id = credit_account
  WHERE reference >= 'correction:' AND reference < 'correction;'
)
SELECT reference, due.amount AS due, done.amount AS done
FROM due FULL JOIN done USING (reference)
WHERE (due.debit, due.credit, due.amount, due.merchant_id)
      IS DISTINCT FROM (done.debit, done.credit, done.amount, done.merchant)
ORDER BY due.amount IS NULL, greatest(due.amount, done.amount) DESC LIMIT :limit
""")


def wrong_corrections(tx: Session, *, limit: int) -> Sequence[WrongWithdrawal]:
    return [WrongWithdrawal(*row) for row in tx.execute(_WRONG_CORRECTIONS, {"limit": limit})]


_WRONG_DEBTS = text("""
SELECT 'Transfer ' || paid.reference || ' pays more than came, or the debt of another merchant'
FROM transfers AS paid
JOIN accounts AS debit ON debit.id = debit_account
JOIN accounts AS credit ON credit.id = credit_account
LEFT JOIN transfers AS came ON came.reference = substr(paid.reference, 6) AND came.credit_account = paid.debit_account
WHERE paid.reference >= 'debt:' AND paid.reference < 'debt;' AND (
  came.amount IS NULL OR paid.amount > came.amount OR paid.created_at <> came.created_at
  OR (debit.kind, credit.kind) <> ('merchant_available', 'merchant_owed') OR debit.merchant_id <> credit.merchant_id)
UNION ALL
SELECT 'Merchant ' || owed.merchant_id || ' owes ' || owed.balance || ' USDT while ' || available.balance
  || ' are available'
FROM accounts AS owed JOIN accounts AS available
  ON available.merchant_id = owed.merchant_id AND available.kind = 'merchant_available'
WHERE owed.kind = 'merchant_owed' AND owed.balance > 0 AND available.balance > 0
UNION ALL
SELECT 'Invoice ' || invoice_id || ' lost ' || lost || ' USDT, more than was credited for it'
FROM (
  SELECT invoice_id, sum(CASE kind WHEN 'reversal' THEN amount ELSE -amount END) AS lost
  FROM corrections WHERE invoice_id IS NOT NULL GROUP BY invoice_id
) AS reversed LEFT JOIN transfers ON reference = 'invoice:' || invoice_id
WHERE lost > coalesce(transfers.amount, 0)
LIMIT :limit
""")


def wrong_debts(tx: Session, *, limit: int) -> Sequence[str]:
    """Returns a sentence for each payment of a debt without the money that pays it, each debt that available money has
    not paid, and each invoice of which more was taken back than credited.
    """
    return [f"{sentence}." for sentence in tx.scalars(_WRONG_DEBTS, {"limit": limit})]


_WRONG_TRANSFERS = text(
    """
SELECT reference, 'stands ' || count(*) || ' times' FROM transfers GROUP BY reference HAVING count(*) > 1
UNION ALL
SELECT reference, 'moves ' || amount || ' USDT' FROM transfers WHERE amount <= 0
UNION ALL
SELECT reference, 'is of no invoice, withdrawal, refund and correction' FROM transfers
WHERE reference !~ '^(debt:)?(invoice|correction):UUID$' AND reference !~ '^debt:(withdrawal|refund):UUID[:]release$'
  AND reference !~ '^(correction:UUID[:]owed|(withdrawal|refund):.*)$'
LIMIT :limit
""".replace("UUID", "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
)


def wrong_transfers(tx: Session, *, limit: int) -> Sequence[tuple[str, str]]:
    """Returns references with what is wrong: constraints refuse all of it, and the owner of a database drops those.

    `wrong_withdrawals` finds each reference of a withdrawal that has none, `wrong_refunds` each of a refund.
    """
    return [(reference, wrong) for reference, wrong in tx.execute(_WRONG_TRANSFERS, {"limit": limit})]


_OVERDRAWN = text(
    "SELECT id, kind, merchant_id, balance, 0 FROM accounts WHERE balance < 0 ORDER BY id LIMIT :limit"
)


def overdrawn(tx: Session, *, limit: int) -> Sequence[WrongBalance]:
    return [WrongBalance(*row) for row in tx.execute(_OVERDRAWN, {"limit": limit})]


_WRONG_WITHDRAWALS = text("""
WITH due AS (
  SELECT 'withdrawal:' || id || ':' || leg.step AS reference, merchant_id, leg.debit, leg.credit, leg.amount
  FROM withdrawals
  CROSS JOIN LATERAL (VALUES
    ('reserve', 'merchant_available', 'merchant_reserved', amount, true),
    ('pay', 'merchant_reserved', 'paid_out', amount - network_fee, status = 'success'),
    ('fee', 'merchant_reserved', 'fees', network_fee, status = 'success' AND network_fee > 0),
    ('release', 'merchant_reserved', 'merchant_available', amount, status IN ('failed', 'cancelled'))
  ) AS leg (step, debit, credit, amount, due)
  WHERE leg.due
), done AS (
  SELECT reference, debit.kind AS debit, debit.merchant_id AS debit_merchant,
         credit.kind AS credit, credit.merchant_id AS credit_merchant, amount
  FROM transfers
  JOIN accounts AS debit ON debit.id = debit_account
  JOIN accounts AS credit ON credit.id = credit_account
  WHERE reference >= 'withdrawal:' AND reference < 'withdrawal;'
)
SELECT reference, due.amount AS due, done.amount AS done
FROM due FULL JOIN done USING (reference)
WHERE (due.debit, due.credit, due.amount) IS DISTINCT FROM (done.debit, done.credit, done.amount)
   OR debit_merchant <> merchant_id
   OR credit_merchant <> merchant_id
ORDER BY coalesce(merchant_id, debit_merchant, credit_merchant) IS NULL, greatest(due.amount, done.amount) DESC
LIMIT :limit
""")


def wrong_withdrawals(tx: Session, *, limit: int) -> Sequence[WrongWithdrawal]:
    return [WrongWithdrawal(*row) for row in tx.execute(_WRONG_WITHDRAWALS, {"limit": limit})]


_WRONG_REFUNDS = text("""
WITH due AS (
  SELECT 'refund:' || id || ':' || leg.step AS reference, merchant_id, leg.debit, leg.credit, amount
  FROM refunds
  CROSS JOIN LATERAL (VALUES
    ('reserve', 'merchant_available', 'merchant_reserved', true),
    ('pay', 'merchant_reserved', 'settlement', status = 'succeeded'),
    ('release', 'merchant_reserved', 'merchant_available', status IN ('failed', 'canceled'))
  ) AS leg (step, debit, credit, due)
  WHERE leg.due AND amount > 0
), done AS (
  SELECT reference, debit.kind AS debit, credit.kind AS credit, amount,
         debit.merchant_id AS debit_merchant, credit.merchant_id AS credit_merchant
  FROM transfers
  JOIN accounts AS debit ON debit.id = debit_account
  JOIN accounts AS credit ON credit.id = credit_account
  WHERE reference >= 'refund:' AND reference < 'refund;'
)
SELECT reference, due.amount AS due, done.amount AS done
FROM due FULL JOIN done USING (reference)
WHERE (due.debit, due.credit, due.amount) IS DISTINCT FROM (done.debit, done.credit, done.amount)
   OR debit_merchant <> merchant_id
   OR credit_merchant <> merchant_id
ORDER BY merchant_id IS NULL, greatest(due.amount, done.amount) DESC LIMIT :limit
""")


_REFERENCES_TWICE = text("""
SELECT 'The payment of reference ' || min(bank_reference) || ' has paid '
  || string_agg('refund ' || id, ' and ' ORDER BY id) || ', and pays one'
FROM refunds WHERE status IN ('sent', 'succeeded') AND bank_reference IS NOT NULL
GROUP BY translate(lower(bank_reference), ' -./_:', '') HAVING count(*) > 1
LIMIT :limit
""")


def references_twice(tx: Session, *, limit: int) -> Sequence[str]:
    """Returns a sentence for each payment of a bank that stands at more than one refund."""
    return [f"{sentence}." for sentence in tx.scalars(_REFERENCES_TWICE, {"limit": limit})]


_WRONG_TIMES = text("""
SELECT 'Transfer ' || reference || ' has another time than the step that it belongs to'
FROM (
  SELECT 'correction:' || id || leg.part AS reference, created_at AS at
  FROM corrections CROSS JOIN (VALUES (''), ('\\:owed')) AS leg (part)
  UNION ALL SELECT 'refund:' || id || '\\:reserve', created_at FROM refunds
  UNION ALL SELECT 'refund:' || id || leg.part, finished_at
  FROM refunds CROSS JOIN (VALUES ('\\:pay'), ('\\:release')) AS leg (part)
) AS steps JOIN transfers USING (reference) WHERE transfers.created_at IS DISTINCT FROM at LIMIT :limit
""")


def wrong_times(tx: Session, *, limit: int) -> Sequence[str]:
    """Returns a sentence for each transfer of a correction or refund that does not have the time of its step."""
    return [f"{sentence}." for sentence in tx.scalars(_WRONG_TIMES, {"limit": limit})]


def wrong_refunds(tx: Session, *, limit: int) -> Sequence[WrongWithdrawal]:
    return [WrongWithdrawal(*row) for row in tx.execute(_WRONG_REFUNDS, {"limit": limit})]
