"""Years of invoices in the database of a running stack, in a minute or two.

The rows are those that purchases leave, without their records and history: the desk's lists and searches read neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from typing import Any, Final

import psycopg2
from psycopg2.extras import NamedTupleCursor, execute_values

from kit.base.codes import check_character
from services.invoices.store.decisions import seal_of_invoice, seal_of_terms
from tests.support.stack import Stack

MERCHANTS: Final = 1000
SECONDS_APART: Final = 6
"""Five million invoices are a year."""

# Ids, orders and references grow with n, so that their indexes grow at one end, as in a year of business.
_OLD_INVOICES: Final = f"""
INSERT INTO invoices (id, merchant_id, key_id, external_id, amount, currency_code, status, customer_id, created_at,
                      expires_at, finished_at, event_id, deal_id)
SELECT (lpad(to_hex(n), 8, '0') || '-0000-8000-8000-' || right(md5(n::text), 12))::uuid,
       md5('m' || n %% {MERCHANTS})::uuid,
       md5('k')::uuid, 'order-' || lpad(n::text, 8, '0'), n %% 50000 / 7.0 + 10, 'EUR',
       CASE WHEN n <= %(invoices)s - %(deals)s THEN 'expired' ELSE 'success' END, 'customer-' || n %% 400000,
       at, at + interval '30 minutes', at + interval '10 minutes', md5('e' || n)::uuid,
       CASE WHEN n > %(invoices)s - %(deals)s
         THEN (lpad(to_hex(n), 8, '1') || '-0000-7000-8000-' || right(md5(n::text), 12))::uuid END
FROM generate_series(1, %(invoices)s) AS n
CROSS JOIN LATERAL (
  SELECT now() - interval '1 hour' - (%(invoices)s - n) * interval '{SECONDS_APART} seconds' AS at
) AS its
"""
_OLD_DEALS: Final = """
INSERT INTO deals (id, invoice_id, merchant_id, status, sub_status, method_code, method_name, currency_code,
                   currency_decimals, invoice_amount, amount_fiat, conversion_rate, client_percent, merchant_percent,
                   requisite_id, created_at, expires_at, mark_paid_at, confirm_before, merchant_usdt, finished_at,
                   reference, takes_reference, sender_name, sender_words, seal)
SELECT deal_id, id, merchant_id, 'completed', 'successfully_paid', 'eur-card', 'Card', 'EUR', 2, amount, amount,
       0.91, 0, 6,
       (SELECT id FROM requisites WHERE method_code = 'eur-card' LIMIT 1), created_at, expires_at,
       created_at + interval '2 minutes', created_at + interval '1 hour', round(amount * 0.94 / 0.91, 6), finished_at,
       upper(left(id::text, 8)), true, 'Sender ' || external_id, 'sender ' || external_id,
       sha256('')
FROM invoices WHERE deal_id IS NOT NULL AND external_id LIKE 'order-%%'
"""
ACCOUNTS: Final = 500
"""They have twenty open deals each."""
_ACCOUNTS: Final = f"""
INSERT INTO requisites (id, method_code, holder, account, max_deals, open_deals, enabled, created_at)
SELECT md5('r' || n)::uuid, 'eur-card', 'Holder ' || n, '4000' || lpad(n::text, 12, '0'), %(open)s,
       %(open)s / {ACCOUNTS}, true, now() - interval '1 year'
FROM generate_series(0, {ACCOUNTS - 1}) AS n
"""
_OPEN: Final = f"""
WITH made AS (
  INSERT INTO invoices (id, merchant_id, key_id, external_id, amount, currency_code, status, customer_id, created_at,
                        expires_at, deal_id)
  SELECT ('ee' || lpad(to_hex(n), 6, '0') || '-0000-8000-8000-000000000000')::uuid, %(merchant)s, md5('k')::uuid,
         'open-' || n, 20000 + n / 100.0, 'EUR', 'pending', 'buyer-' || n, at, at,
         ('dd' || lpad(to_hex(n), 6, '0') || '-0000-7000-8000-000000000000')::uuid
  FROM generate_series(1, %(open)s) AS n
  CROSS JOIN LATERAL (SELECT now() - interval '20 minutes' + n * interval '0.1 seconds' AS at) AS its
  RETURNING *
)
INSERT INTO deals (id, invoice_id, merchant_id, status, sub_status, method_code, method_name, currency_code,
                   currency_decimals, invoice_amount, amount_fiat, conversion_rate, client_percent, merchant_percent,
                   requisite_id, created_at, expires_at, mark_paid_at, confirm_before, reference, takes_reference,
                   sender_name, sender_words, seal)
SELECT deal_id, id, merchant_id, 'pending', 'awaiting_confirmation', 'eur-card', 'Card', 'EUR', 2, amount, amount,
       0.91, 0, 6, md5('r' || substr(external_id, 6)::int %% {ACCOUNTS})::uuid, created_at, expires_at, created_at,
       created_at + interval '1 day', upper(left(id::text, 8)), true, 'Buyer ' || external_id,
       'buyer ' || external_id, sha256('')
FROM made
"""
# The deals that are decided need their first steps.
_STEPS: Final = """
INSERT INTO deal_transitions (deal_id, at, status, sub_status, actor, note)
SELECT id, created_at, 'pending', step, 'customer', '' FROM deals
CROSS JOIN (VALUES ('awaiting_payment'), ('awaiting_confirmation')) AS steps (step)
WHERE status = 'pending' AND id::text LIKE 'dd%%'
"""
NOT_SUMMED: Final = """
UPDATE daily_place SET transition_id = (SELECT coalesce(max(id), 0) FROM deal_transitions), invoice_at = now(),
                       summed_until = now()
"""
"""Sums of days begin after the rows that are made: the worker would read millions of them meanwhile."""
_INDEXES: Final = """
SELECT indexname, indexdef FROM pg_indexes
WHERE tablename = ANY(ARRAY['invoices', 'deals'])
  AND indexname NOT IN (SELECT conname FROM pg_constraint) ORDER BY indexname
"""


@dataclass(frozen=True)
class Years:
    """The numbers of rows that were made: `invoices`, of which `deals` have a completed deal; `open` deals are more."""

    invoices: int
    deals: int
    open: int


@contextmanager
def filling(stack: Stack) -> Iterator[Any]:
    """A superuser's cursor for many invoices. Indexes are made after them, which takes a quarter of the time."""
    with closing(psycopg2.connect(stack.superuser_url("invoices"))) as connection:
        connection.autocommit = True
        cursor: Any = connection.cursor(cursor_factory=NamedTupleCursor)
        cursor.execute("SET session_replication_role = replica; SET synchronous_commit = off")
        cursor.execute("SET maintenance_work_mem = '256MB'")
        cursor.execute(_INDEXES)
        indexes = cursor.fetchall()
        for name, _ in indexes:
            cursor.execute(f'DROP INDEX "{name}"')
        yield cursor
        for _, definition in indexes:
            cursor.execute(definition)
        cursor.execute("VACUUM ANALYZE")


def make(stack: Stack, years: Years) -> None:
    """Fills the database of invoices."""
    values = asdict(years) | {"merchant": stack.demo["merchant_id"]}
    with filling(stack) as cursor:
        for statement in (_ACCOUNTS, _OLD_INVOICES, _OLD_DEALS, _OPEN, _STEPS, NOT_SUMMED):
            cursor.execute(statement, values)
        _name_open(cursor)
        _seal_open(stack, cursor)


def _name_open(cursor: Any) -> None:
    """Gives the open deals references with their check characters, which SQL can't compute."""
    cursor.execute("SELECT id FROM deals WHERE finished_at IS NULL ORDER BY id")
    rows = [(row.id, reference_of(number)) for number, row in enumerate(cursor.fetchall(), 1)]
    named = "UPDATE deals SET reference = new.code FROM (VALUES %s) new (id, code) WHERE deals.id = new.id"
    execute_values(cursor, named, rows, template="(%s::uuid, %s)")


def reference_of(number: int) -> str:
    """The reference of an open deal; the first one has the number 1."""
    code = f"{number:07}"
    return code + check_character(code)


def _seal_open(stack: Stack, cursor: Any) -> None:
    """Seals the open deals and their invoices as invoices does: a deal without its seal is not confirmed."""
    seals = stack.seals_of("invoices")
    for table, seal in (("invoices", seal_of_invoice), ("deals", seal_of_terms)):
        cursor.execute(f"SELECT * FROM {table} WHERE finished_at IS NULL")
        rows = [(str(each.id), seal(seals, each)) for each in cursor.fetchall()]
        sealed = (
            f"UPDATE {table} old SET seal = new.seal FROM (VALUES %s) new (id, seal) WHERE old.id = new.id"
        )
        execute_values(cursor, sealed, rows, template="(%s::uuid, %s)")
