"""Databases that PostgreSQL plans for as if they had a million rows.

Each has one row in fifty. Their distribution is analyzed; the number of rows in the statistics is then multiplied, and
nothing analyzes the tables again. A scan of the whole table looks cheaper to the planner than it would be among a
million, because its pages are counted on disk: a statement that still reads an index here reads it there.
"""

from contextlib import closing
from datetime import UTC, datetime
from hashlib import md5
from typing import Final
from uuid import UUID

import psycopg2

from tests.support.databases import past_all_rules

ROWS: Final = 20_000
MILLION: Final = 1_000_000
OPEN: Final = 200
"""The newest invoices have open deals: ten thousand among a million."""
MERCHANTS: Final = 500
REQUISITES: Final = 50
NOW: Final = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)


def id_of(kind: str, number: int) -> str:
    """The id of a row: "i" an invoice, "d" a deal, "m" a merchant, "r" a requisite, "w" a withdrawal."""
    return str(UUID(md5(f"{kind}{number}".encode(), usedforsecurity=False).hexdigest()))


def _id(kind: str, number: str = "n") -> str:
    return f"md5('{kind}' || {number})::uuid"


_MERCHANT: Final = _id("m", f"(n %% {MERCHANTS})")
_AT: Final = "%(now)s - n * interval '26 minutes'"
_MARKED_AT: Final = (
    f"CASE WHEN (n <= {OPEN} AND n %% 10 <> 1) OR (n > {OPEN} AND n %% 10 < 7) OR n %% 100 = 8 THEN {_AT} END"
)
_REQUISITE: Final = _id("r", f"(n %% {REQUISITES})")

_INVOICES: Final = f"""
INSERT INTO requisites (id, method_code, holder, account, max_deals, open_deals, enabled, created_at)
SELECT {_id("r")}, 'method_' || n %% 5, 'Holder ' || n, '4000 0000 0000 ' || 1000 + n, 1000, 0, true, %(now)s
FROM generate_series(0, {REQUISITES - 1}) AS n;
INSERT INTO invoices (id, merchant_id, key_id, external_id, amount, currency_code, status, customer_id, created_at,
                      expires_at, finished_at, event_id, deal_id)
SELECT {_id("i")}, {_MERCHANT}, md5('k')::uuid, 'order-' || n, n %% 5000 + 10.5,
       CASE n %% 4 WHEN 0 THEN 'GBP' ELSE 'EUR' END,
       CASE WHEN n <= {OPEN} THEN 'pending' WHEN n %% 10 < 7 THEN 'success' WHEN n %% 10 = 7 THEN 'canceled'
            WHEN n %% 100 = 8 THEN 'fail' ELSE 'expired' END,
       CASE WHEN n <= {OPEN} THEN 'customer-' || n ELSE 'customer-' || n %% 2000 END,
       {_AT}, {_AT}, CASE WHEN n > {OPEN} THEN {_AT} END,
       CASE WHEN n > {OPEN} THEN {_id("e")} END, {_id("d")}
FROM generate_series(1, {ROWS}) AS n;
INSERT INTO deals (id, invoice_id, merchant_id, status, sub_status, method_code, method_name, currency_code,
                   currency_decimals, invoice_amount, amount_fiat, conversion_rate, client_percent, merchant_percent,
                   requisite_id, created_at, expires_at, mark_paid_at, confirm_before, merchant_usdt, finished_at,
                   reference, sender_name, sender_words, takes_reference, seal)
SELECT {_id("d")}, {_id("i")}, {_MERCHANT},
       CASE WHEN n <= {OPEN} THEN CASE n %% 10 WHEN 0 THEN 'appeal' ELSE 'pending' END
            WHEN n %% 10 < 7 THEN 'completed' WHEN n %% 10 = 7 THEN 'canceled'
            WHEN n %% 100 = 8 THEN 'failed' ELSE 'expired' END,
       CASE WHEN n <= {OPEN} THEN CASE n %% 10 WHEN 0 THEN 'opened_by_customer' WHEN 1 THEN 'awaiting_payment'
                                               ELSE 'awaiting_confirmation' END
            WHEN n %% 10 < 7 THEN 'successfully_paid' WHEN n %% 10 = 7 THEN 'canceled_by_customer'
            WHEN n %% 100 = 8 THEN 'rejected_by_operator' ELSE 'payment_window_expired' END,
       'method_' || n %% 5, 'Method', CASE n %% 4 WHEN 0 THEN 'GBP' ELSE 'EUR' END, 2,
       n %% 5000 + 10.5, n %% 5000 + 10.75, 0.92, 0, 0, {_REQUISITE}, {_AT}, {_AT}, {_MARKED_AT},
       {_MARKED_AT} + interval '1 hour',
       CASE WHEN n > {OPEN} AND n %% 10 < 7 THEN 1 END, CASE WHEN n > {OPEN} THEN {_AT} END,
       lpad(n::text, 8, '0'), 'Name ' || n, 'name ' || n, true, sha256('')
FROM generate_series(1, {ROWS}) AS n;
INSERT INTO deal_transitions (deal_id, at, status, sub_status, actor, note)
SELECT id, created_at, status, sub_status, 'time', '' FROM deals ORDER BY created_at;
INSERT INTO cases (invoice_id, merchant_id, deal_id, opened_at, note, resolved_at, outcome, actor, ended_as,
                   policy, answer_by, seal)
SELECT {_id("i")}, {_MERCHANT}, {_id("d")}, {_AT}, 'late', CASE WHEN n %% 50 > 0 THEN {_AT} END,
       CASE WHEN n %% 50 > 0 THEN 'answered' END, CASE WHEN n %% 50 > 0 THEN 'an operator' END,
       CASE WHEN n %% 50 > 0 THEN 'return' END, 'ask_credit', {_AT}, sha256('')
FROM generate_series({OPEN + 8}, {ROWS}, 10) AS n;
"""
_WITHDRAWALS: Final = f"""
INSERT INTO accounts (kind, merchant_id, balance)
SELECT kind, {_id("m")}, CASE kind WHEN 'merchant_owed' THEN 0 ELSE 1000000 END
FROM generate_series(0, {MERCHANTS - 1}) AS n
CROSS JOIN (VALUES ('merchant_available'), ('merchant_reserved'), ('merchant_owed')) AS kinds (kind);
INSERT INTO withdrawals (id, merchant_id, request_key, method_id, network, address, amount, network_fee, status,
                         substatus, external_tx_id, created_at, updated_at, processed_at)
SELECT {_id("w")}, {_MERCHANT}, {_id("q")}, 1, 'TRC20', 'T' || n, n %% 5000 + 10, 1,
       CASE WHEN n <= {OPEN} THEN 'pending' ELSE 'success' END, NULL,
       CASE WHEN n > {OPEN} THEN md5('x' || n) || md5('y' || n) END, {_AT}, {_AT}, CASE WHEN n > {OPEN} THEN {_AT} END
FROM generate_series(1, {ROWS}) AS n;
INSERT INTO transfers (id, reference, debit_account, credit_account, amount, created_at)
SELECT {_id("t")}, 'invoice:' || {_id("i")}, (SELECT id FROM accounts WHERE kind = 'settlement'), accounts.id, 5, {_AT}
FROM generate_series(1, {ROWS}) AS n
JOIN accounts ON accounts.merchant_id = {_MERCHANT} AND accounts.kind = 'merchant_available';
INSERT INTO transfers (id, reference, debit_account, credit_account, amount, created_at)
SELECT {_id("u")}, 'withdrawal:' || {_id("w")} || ':reserve', available.id, reserved.id, 5, {_AT}
FROM generate_series(1, {ROWS // 10}) AS n
JOIN accounts AS available ON available.merchant_id = {_MERCHANT} AND available.kind = 'merchant_available'
JOIN accounts AS reserved ON reserved.merchant_id = {_MERCHANT} AND reserved.kind = 'merchant_reserved';
INSERT INTO daily_balances (account, day, balance)
SELECT id, CAST(%(now)s - n * interval '1 day' AS date), 5 FROM accounts CROSS JOIN generate_series(1, 40) AS n
WHERE balance IS NOT NULL;
"""
_WEBHOOKS: Final = f"""
INSERT INTO events (payload_event_id, invoice_id, merchant_id, key_id, event_type, status, callback_url, destination,
                    payload, auto_attempts, manual_attempts, next_retry_at, created_at, updated_at)
SELECT {_id("e")}, {_id("i")}, {_MERCHANT}, md5('k')::uuid,
       CASE n %% 10 WHEN 0 THEN 'invoice.expired' ELSE 'invoice.success' END,
       CASE WHEN n <= {OPEN} THEN 'pending' WHEN n %% 100 = 0 THEN 'dead' ELSE 'success' END, 'https://shop.example/hook',
       'shop.example:443', 'x', 1, 0, CASE WHEN n <= {OPEN} THEN {_AT} END, {_AT}, {_AT}
FROM generate_series({ROWS}, 1, -1) AS n;
INSERT INTO attempts (event_id, try_number, trigger, status, http_status, duration_ms, created_at)
SELECT id, 1, 'auto', 'success', 200, 5, created_at FROM events;
"""
_MERCHANTS: Final = f"""
INSERT INTO owners (id, email, created_at)
SELECT {_id("o")}, 'owner-' || n || '@example.com', {_AT} FROM generate_series(0, {ROWS // 4}) AS n;
INSERT INTO categories (code, commission, updated_at)
SELECT 'category-' || n, 0, %(now)s FROM generate_series(0, 19) AS n;
INSERT INTO merchants (id, owner_id, name, activated_at, banned_at, category_code, client_share, created_at)
SELECT {_id("m")}, {_id("o", f"(n %% {ROWS // 4})")}, 'Shop ' || n,
       CASE WHEN n %% 100 > 0 THEN {_AT} END,
       CASE WHEN n %% 500 = 0 THEN {_AT} END, 'category-' || n %% 20, 0, {_AT}
FROM generate_series(1, {ROWS}) AS n;
"""
_APPROVALS: Final = f"""
INSERT INTO approvals (id, act, object, merchant_id, summary, request, requested_by, requested_as, requested_at, note,
                       state, decided_by, decided_as, decided_at)
SELECT {_id("a")}, 'deal.adjust', 'deal:' || {_id("d")}, {_MERCHANT}, 'Do it', '{{}}', 'ann', 'ann', {_AT}, '',
       CASE WHEN n <= {OPEN} THEN 'pending' ELSE 'approved' END, CASE WHEN n > {OPEN} THEN 'ben' END,
       CASE WHEN n > {OPEN} THEN 'ben' END, CASE WHEN n > {OPEN} THEN {_AT} END
FROM generate_series(1, {ROWS}) AS n;
"""

FILLS: Final = {
    "invoices": (_INVOICES + _APPROVALS, ("invoices", "deals", "deal_transitions", "approvals")),
    "withdrawals": (_WITHDRAWALS, ("withdrawals", "transfers", "daily_balances")),
    "webhooks": (_WEBHOOKS, ("events", "attempts")),
    "identity": (_MERCHANTS, ("owners", "merchants")),
}
"""The rows of each service, and its tables that count as a million."""

_LEFT_ALONE: Final = """
SELECT format('ALTER TABLE %I SET (autovacuum_enabled = false)', relname) FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""
_AS_A_MILLION: Final = "UPDATE pg_class SET reltuples = reltuples * %s WHERE oid = ANY(%s::regclass[])"


def fill(url: str, service: str) -> None:
    """Fills a fresh database of the service, and lets the planner take it for one with a million rows."""
    rows, large = FILLS[service]
    with (
        closing(psycopg2.connect(past_all_rules(url))) as connection,
        connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(_LEFT_ALONE)
        for (statement,) in cursor.fetchall():
            cursor.execute(statement)
        cursor.execute(rows, {"now": NOW})
        cursor.execute("ANALYZE")
        cursor.execute(_AS_A_MILLION, (MILLION // ROWS, list(large)))
