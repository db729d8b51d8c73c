"""The sums of changes of merchants' money beside payments.

They read what accounts of the system got, and what `settlement` gave to corrections: indexes have both without the many
credits of invoices.
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from services.withdrawals.models import NO_CREDIT


def _in_span(at: str) -> str:
    """Returns the condition that a time is of the days of the report, in UTC."""
    return (
        f"{at} >= CAST(CAST(:first_day AS date) AS timestamp) AT TIME ZONE 'UTC'"
        f" AND {at} < CAST(CAST(:last_day AS date) + 1 AS timestamp) AT TIME ZONE 'UTC'"
    )


_OF_SYSTEM: Final = text("SELECT id FROM accounts WHERE merchant_id IS NULL")
_MOVEMENTS: Final = text(f"""
WITH moved AS (
  SELECT created_at AS at, merchant_id, reference, -amount AS amount
  FROM transfers JOIN accounts ON accounts.id = debit_account
  WHERE credit_account = ANY(:of_system) AND {_in_span("created_at")}
  UNION ALL
  SELECT created_at, merchant_id, reference, amount
  FROM transfers JOIN accounts ON accounts.id = credit_account
  WHERE debit_account = ANY(:of_system) AND ({NO_CREDIT}) AND {_in_span("created_at")}
  UNION ALL
  SELECT credited_at, merchant_id, 'shifted', amount FROM credits_of_other_days
  WHERE {_in_span("credited_at")}
  UNION ALL
  SELECT paid_at, merchant_id, 'shifted', -amount FROM credits_of_other_days WHERE {_in_span("paid_at")}
), named AS (
  SELECT CASE :by WHEN 'merchant' THEN CAST(moved.merchant_id AS text)
                  WHEN 'month' THEN to_char(at AT TIME ZONE 'UTC', 'YYYY-MM')
                  ELSE to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD') END AS key,
         coalesce(corrections.kind, split_part(reference, ':', 1)) AS kind, moved.amount
  FROM moved LEFT JOIN corrections ON corrections.id =
    CASE WHEN reference LIKE 'correction:%' THEN CAST(split_part(reference, ':', 2) AS uuid) END
  WHERE moved.merchant_id = :merchant_id OR CAST(:merchant_id AS uuid) IS NULL
)
SELECT key, coalesce(sum(amount) FILTER (WHERE kind = 'shifted'), 0),
       coalesce(sum(amount) FILTER (WHERE kind IN ('late_credit', 'surplus')), 0),
       coalesce(sum(amount) FILTER (WHERE kind IN ('manual_credit', 'manual_debit')), 0),
       coalesce(sum(amount) FILTER (WHERE kind = 'reversal'), 0),
       coalesce(sum(amount) FILTER (WHERE kind = 'refund'), 0),
       coalesce(sum(amount) FILTER (WHERE kind = 'withdrawal'), 0)
FROM named WHERE key > :after GROUP BY key ORDER BY key COLLATE "C" LIMIT :limit
""")  # noqa: S608  made of constants


class By(StrEnum):
    DAY = "day"
    MONTH = "month"
    MERCHANT = "merchant"


@dataclass(frozen=True)
class Movements:
    """Signed USDT of one key, beside what a report credits.

    shifted  what the ledger credited under this key and a report counts under another, less the other way round
    """

    key: str
    shifted: Decimal
    received: Decimal
    by_hand: Decimal
    reversed: Decimal
    refunded: Decimal
    withdrawn: Decimal


def movements(
    tx: Session, by: By, *, first_day: date, last_day: date, merchant_id: UUID | None, after: str, limit: int
) -> list[Movements]:
    """Returns the first rows after the key, in the order of keys."""
    values: dict[str, object] = {"by": by, "first_day": first_day, "last_day": last_day}
    values |= {
        "of_system": list(tx.scalars(_OF_SYSTEM)),
        "merchant_id": merchant_id,
        "after": after,
        "limit": limit,
    }
    return [Movements(*row) for row in tx.execute(_MOVEMENTS, values)]
