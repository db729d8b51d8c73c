"""Months of business of a thousand merchants in the databases of a running stack: invoices with their deals, webhooks,
transfers, and the sums of days that the workers would have kept.

The rows are those that purchases leave, without their records and history: the dashboard's pages read neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg2

from benchmarks.desk.years import NOT_SUMMED, filling
from tests.support.stack import Stack

DAYS: Final = 90
_SHOPS: Final = """
CREATE TEMP TABLE shops AS
SELECT number, id FROM unnest(%(merchants)s::uuid[]) WITH ORDINALITY AS given (id, number)
"""
# Invoice n is the first merchant's up to `largest`; the others have the rest in turn. Three of five are paid.
_MADE: Final = f"""
CREATE TEMP TABLE made AS
SELECT n, (SELECT id FROM shops WHERE number = CASE WHEN n %% %(invoices)s < %(largest)s THEN 1
                                               ELSE 2 + n %% (%(count)s - 1) END) AS merchant_id,
       (lpad(to_hex(n), 8, '0') || '-0000-8000-8000-' || right(md5(n::text), 12))::uuid AS id,
       CASE WHEN n %% 5 < 3 THEN (lpad(to_hex(n), 8, '1') || '-0000-7000-8000-' || right(md5(n::text), 12))::uuid
         END AS deal_id,
       n %% 50000 / 7.0 + 10 AS amount, round((n %% 50000 / 7.0 + 10) * 0.94 / 0.91, 6) AS usdt, at
FROM (
  SELECT n, now() - (%(invoices)s - place) * interval '{DAYS} days' / %(invoices)s AS at
  FROM (SELECT n, n::bigint * 7919 %% %(invoices)s AS place FROM generate_series(1, %(invoices)s) AS n) AS placed
) AS timed
"""
_INVOICES: Final = """
INSERT INTO invoices (id, merchant_id, key_id, external_id, amount, currency_code, status, customer_id, created_at,
                      expires_at, finished_at, event_id, deal_id)
SELECT id, merchant_id, md5('k')::uuid, 'order-' || n, amount, 'EUR',
       CASE WHEN deal_id IS NULL THEN 'expired' ELSE 'success' END, 'customer-' || n, at, at + interval '30 minutes',
       at + interval '10 minutes', md5('e' || n)::uuid, deal_id
FROM made
"""
_DEALS: Final = """
INSERT INTO deals (id, invoice_id, merchant_id, status, sub_status, method_code, method_name, currency_code,
                   currency_decimals, invoice_amount, amount_fiat, conversion_rate, client_percent, merchant_percent,
                   requisite_id, created_at, expires_at, mark_paid_at, confirm_before, merchant_usdt, finished_at,
                   reference, takes_reference, seal)
SELECT deal_id, id, merchant_id, 'completed', 'successfully_paid', 'eur-card', 'Card', 'EUR', 2, amount, amount,
       0.91, 0, 6, (SELECT id FROM requisites WHERE method_code = 'eur-card' LIMIT 1), at, at + interval '30 minutes',
       at + interval '2 minutes', at + interval '1 hour', usdt, at + interval '10 minutes',
       upper(left(id::text, 8)), true, sha256('')
FROM made WHERE deal_id IS NOT NULL
"""
_DAYS_OF_INVOICES: Final = """
DELETE FROM daily_sums WHERE merchant_id IN (SELECT id FROM shops);
INSERT INTO daily_sums
SELECT (at AT TIME ZONE 'UTC')::date, merchant_id, 'EUR', '', count(*), 0, 0, 0, 0, 0, 0, 0, 0, 0
FROM made WHERE at < now() - interval '5 minutes' GROUP BY 1, 2;
INSERT INTO daily_sums
SELECT (at AT TIME ZONE 'UTC')::date, merchant_id, 'EUR', 'eur-card', 0, count(*), 0, count(*), count(*), 0,
       sum(amount), sum(amount * 0.06), sum(round(amount / 0.91, 6)), sum(usdt)
FROM made WHERE deal_id IS NOT NULL GROUP BY 1, 2;
INSERT INTO daily_times
SELECT (at AT TIME ZONE 'UTC')::date, merchant_id, 'EUR', 'eur-card', 1 + n % 12, count(*)
FROM made WHERE deal_id IS NOT NULL GROUP BY 1, 2, 5;
UPDATE daily_place SET invoice_at = now() - interval '5 minutes'
"""
"""Creations of the last minutes are not summed yet: a report counts them from their rows."""
# Of ten deliveries of the last hour one failed, and of twenty of the last two weeks one was given up.
_EVENTS: Final = """
INSERT INTO events (payload_event_id, invoice_id, merchant_id, key_id, event_type, status, callback_url, destination,
                    payload, auto_attempts, manual_attempts, next_retry_at, created_at, updated_at)
SELECT md5('e' || n)::uuid, id, merchant_id, md5('k')::uuid, 'invoice.finished', state,
       'https://shop.example/webhooks', 'shop.example:443', convert_to(repeat('x', 400), 'UTF8'), 1, 0,
       CASE state WHEN 'pending' THEN now() + interval '1 day' END, at, at
FROM made CROSS JOIN LATERAL (
  SELECT CASE WHEN at > now() - interval '1 hour' AND n % 10 = 0 THEN 'pending'
              WHEN at > now() - interval '14 days' AND n % 20 = 1 THEN 'dead' ELSE 'success' END AS state
) AS its ORDER BY at
"""
_ACCOUNTS: Final = """
INSERT INTO accounts (kind, merchant_id, balance)
SELECT kind, id, 0 FROM shops CROSS JOIN (VALUES ('merchant_available'), ('merchant_reserved')) AS kinds (kind)
ON CONFLICT DO NOTHING
"""
_TRANSFERS: Final = """
INSERT INTO transfers (id, reference, debit_account, credit_account, amount, created_at)
SELECT deal_id, 'invoice:' || made.id, (SELECT id FROM accounts WHERE kind = 'settlement'), accounts.id, usdt, at
FROM made JOIN accounts ON accounts.merchant_id = made.merchant_id AND kind = 'merchant_available'
WHERE deal_id IS NOT NULL ORDER BY at;
UPDATE accounts SET balance = credited
FROM (SELECT credit_account, sum(amount) AS credited FROM transfers GROUP BY 1) AS sums
WHERE accounts.id = credit_account AND accounts.merchant_id IN (SELECT id FROM shops);
INSERT INTO daily_balances
SELECT credit_account, day, sum(amount) OVER (PARTITION BY credit_account ORDER BY day) FROM (
  SELECT credit_account, (created_at AT TIME ZONE 'UTC')::date AS day, sum(amount) AS amount FROM transfers
  WHERE created_at < date_trunc('day', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' GROUP BY 1, 2
) AS days ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True)
class Months:
    """`invoices` in all, of which the first merchant has `largest`, the others as many as each other."""

    invoices: int
    largest: int


@contextmanager
def _superuser(stack: Stack, database: str, values: dict[str, Any]) -> Iterator[Any]:
    """A cursor without triggers, with the tables `shops` and `made`."""
    with closing(psycopg2.connect(stack.superuser_url(database))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica; SET synchronous_commit = off")
            cursor.execute(_SHOPS, values)
            cursor.execute(_MADE, values)
            yield cursor
            cursor.execute("VACUUM ANALYZE")


def make(stack: Stack, months: Months, merchants: Sequence[str]) -> None:
    """Fills the databases of invoices, webhooks and withdrawals."""
    values: dict[str, Any] = {
        "merchants": list(merchants),
        "count": len(merchants),
        "invoices": months.invoices,
        "largest": months.largest,
    }
    with filling(stack) as cursor:
        for statement in (_SHOPS, _MADE, NOT_SUMMED, _INVOICES, _DEALS):
            cursor.execute(statement, values)
        cursor.execute(_DAYS_OF_INVOICES)
    with _superuser(stack, "webhooks", values) as cursor:
        cursor.execute(_EVENTS)
    with _superuser(stack, "withdrawals", values) as cursor:
        cursor.execute(_ACCOUNTS)
        cursor.execute(_TRANSFERS)
