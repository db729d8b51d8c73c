"""Balances at the end of days (UTC): the balance at a moment of the past is the one of the day before and the transfers
since. A day on which an account had no transfer has none. That of what a merchant owes is zero or below: credits less
debits, as that of the other accounts.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy import text
from sqlalchemy.orm import Session

_LOCK: Final = text("SELECT pg_try_advisory_xact_lock(hashtextextended('daily_balances', 0))")
_CLOSE: Final = text("""
WITH page AS MATERIALIZED (
  SELECT accounts.id, coalesce(last.balance, 0) AS balance,
         coalesce(CAST(last.day + 1 AS timestamp) AT TIME ZONE 'UTC', '-infinity') AS since
  FROM accounts LEFT JOIN LATERAL (
    SELECT day, balance FROM daily_balances WHERE account = accounts.id ORDER BY day DESC LIMIT 1
  ) AS last ON true
  WHERE accounts.balance IS NOT NULL AND accounts.id > :after ORDER BY accounts.id LIMIT :page
), started AS MATERIALIZED (
  SELECT id, balance, least(
    (SELECT created_at FROM transfers WHERE credit_account = page.id AND created_at >= since
     ORDER BY created_at, id LIMIT 1),
    (SELECT created_at FROM transfers WHERE debit_account = page.id
       AND (reference < 'invoice:' OR reference >= 'invoice;')
       AND created_at >= since ORDER BY created_at, id LIMIT 1)
  ) AS begin FROM page
), spans AS MATERIALIZED (
  SELECT id, balance, begin, least(
    :until, (date_trunc('day', begin AT TIME ZONE 'UTC') + make_interval(days => :days)) AT TIME ZONE 'UTC'
  ) AS until FROM started WHERE begin < :until
), moved AS (
  SELECT spans.id, spans.balance, CAST(legs.created_at AT TIME ZONE 'UTC' AS date) AS day, sum(legs.amount) AS amount
  FROM spans CROSS JOIN LATERAL (
    SELECT created_at, amount FROM transfers
    WHERE credit_account = spans.id AND created_at >= begin AND created_at < spans.until
    UNION ALL
    SELECT created_at, -amount FROM transfers
    WHERE debit_account = spans.id AND (reference < 'invoice:' OR reference >= 'invoice;')
      AND created_at >= begin AND created_at < spans.until
  ) AS legs GROUP BY 1, 2, 3
), closed AS (
  INSERT INTO daily_balances (account, day, balance)
  SELECT id, day, balance + sum(amount) OVER (PARTITION BY id ORDER BY day) FROM moved RETURNING account
)
SELECT (SELECT count(*) FROM page), (SELECT coalesce(max(id), 0) FROM page), (SELECT count(*) FROM closed)
""")


@dataclass(frozen=True)
class Closed:
    """The accounts that were read, the last of them, and the days that were added to them."""

    accounts: int
    last_account: int
    days: int


def close_next(tx: Session, *, after: int, until: datetime, page: int, days: int) -> Closed | None:
    """Adds to each of the `page` next accounts after the account `after` its next days that ended by `until`: those of
    a span of `days`. Returns None while another process does it.
    """
    if not tx.scalar(_LOCK):
        return None
    values = {"after": after, "until": until, "page": page, "days": days}
    return Closed(*tx.execute(_CLOSE, values).one())
