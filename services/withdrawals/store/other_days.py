"""Credits of invoices that were paid on another day (UTC) than that of the credit.

Reports count a payment when it was confirmed, the ledger when it was credited: moments later, or after an outage. With
these few credits both add up to the same sum, for any whole days.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

MOST_ROWS: Final = 1000

_KEEP: Final = text(
    "INSERT INTO credits_of_other_days (invoice_id, merchant_id, amount, paid_at, credited_at)"
    " VALUES (:invoice_id, :merchant_id, :amount, :paid_at, :credited_at)"
)
_PAID: Final = "(paid_at >= :since AND paid_at < :until)"
_CREDITED: Final = "(credited_at >= :since AND credited_at < :until)"
_CROSSING: Final = f"FROM credits_of_other_days WHERE merchant_id = :merchant_id AND {_PAID} <> {_CREDITED}"
_ROWS: Final = text(f"""
SELECT invoice_id, amount, paid_at, credited_at {_CROSSING} ORDER BY paid_at LIMIT {MOST_ROWS}
""")
_SUMS: Final = text(f"""
SELECT coalesce(sum(amount) FILTER (WHERE {_PAID}), 0), coalesce(sum(amount) FILTER (WHERE {_CREDITED}), 0)
{_CROSSING}
""")


@dataclass(frozen=True)
class OtherDay:
    """A credit whose invoice was paid on another day."""

    invoice_id: UUID
    amount: Decimal
    paid_at: datetime
    credited_at: datetime


@dataclass(frozen=True)
class Crossing:
    """Credits with one of their two times in a span, and the other one outside.

    paid      the sum of those paid in the span
    credited  the sum of those credited in it
    rows      the first MOST_ROWS, by the time of the payment
    """

    paid: Decimal
    credited: Decimal
    rows: Sequence[OtherDay]


def keep(
    tx: Session,
    *,
    invoice_id: UUID,
    merchant_id: UUID,
    amount: Decimal,
    paid_at: datetime | None,
    credited_at: datetime,
) -> None:
    """Keeps the times of a credit if they are of two days."""
    if paid_at is None or paid_at.astimezone(UTC).date() == credited_at.astimezone(UTC).date():
        return
    values = {"invoice_id": invoice_id, "merchant_id": merchant_id, "amount": amount}
    tx.execute(_KEEP, values | {"paid_at": paid_at, "credited_at": credited_at})


def crossing(tx: Session, merchant_id: UUID, *, since: datetime | None, until: datetime | None) -> Crossing:
    """Returns the credits of a merchant that cross the ends of a span."""
    values: dict[str, Any] = {
        "merchant_id": merchant_id,
        "since": since or datetime.min.replace(tzinfo=UTC),
        "until": until or datetime.max.replace(tzinfo=UTC),
    }
    rows = [OtherDay(*row) for row in tx.execute(_ROWS, values)]
    if not rows:
        return Crossing(Decimal(0), Decimal(0), rows)
    paid, credited = tx.execute(_SUMS, values).one()
    return Crossing(paid, credited, rows)
