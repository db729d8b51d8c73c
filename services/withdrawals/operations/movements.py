"""Changes of merchants' money beside payments, by day, month or merchant."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.proto import most_of
from kit.rpc import values
from services.withdrawals.store import movements
from services.withdrawals.store.movements import By, Movements
from services.withdrawals.wiring import Deps

MOST_DAYS: Final = 366


def get_movements(
    deps: Deps, *, first_day: str, last_day: str, by: By, merchant_id: str, after_key: str, limit: int
) -> Sequence[Movements]:
    """Returns the sums of these days. Raises VALIDATION_ERROR."""
    first, last = (
        values.parsed(name, text, date.fromisoformat)
        for name, text in (("first_day", first_day), ("last_day", last_day))
    )
    if not timedelta(0) <= last - first < timedelta(days=MOST_DAYS):
        raise values.invalid("last_day", f"Expected the first day or a later one, at most {MOST_DAYS} days")
    most = most_of(pb.GetMovementsRequest, "after_key")
    with deps.db.transaction() as tx:
        return movements.movements(
            tx,
            by,
            first_day=first,
            last_day=last,
            merchant_id=values.uuid("merchant_id", merchant_id) if merchant_id else None,
            after=values.text("after_key", after_key, least=0, most=most),
            limit=values.rows(limit),
        )
