"""New addresses of which identity is still to be told: a row is written with the address; it goes when identity took
it.
"""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from services.withdrawals.store import addresses
from services.withdrawals.store.views import AddressView

_ADD: Final = text("INSERT INTO address_notices (address_id, due_at) VALUES (:id, :at)")
_TAKE: Final = text("""
UPDATE address_notices SET due_at = :lease_ends
WHERE address_id = (
  SELECT address_id FROM address_notices WHERE due_at <= :now ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED
)
RETURNING address_id
""")
_REMOVE: Final = text("DELETE FROM address_notices WHERE address_id = :id")


def add(tx: Session, address_id: UUID, *, at: datetime) -> None:
    tx.execute(_ADD, {"id": address_id, "at": at})


def take_due(tx: Session, *, now: datetime, lease: timedelta) -> AddressView | None:
    """Returns the address that is due for longest, and puts it off by `lease`: no other process takes it meanwhile."""
    id = tx.scalar(_TAKE, {"now": now, "lease_ends": now + lease})
    return None if id is None else addresses.locked(tx, id)


def remove(tx: Session, address_id: UUID) -> None:
    tx.execute(_REMOVE, {"id": address_id})
