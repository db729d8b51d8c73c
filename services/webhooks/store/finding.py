"""The operator's search: webhook events by their number."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import Connection, select

from kit.db.finding import Found, Search
from services.webhooks.models import Event

_DIGITS_MOST: Final = 18


def _by_number(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MOST):
        return ()
    columns = (
        Event.id,
        Event.status,
        Event.created_at,
        Event.merchant_id,
        Event.invoice_id,
        Event.event_type,
    )
    return [
        Found(
            kind="webhook",
            id=str(row.id),
            field="number",
            value=str(row.id),
            status=row.status,
            created_at=row.created_at,
            facts={
                "merchant_id": str(row.merchant_id),
                "invoice_id": str(row.invoice_id),
                "event_type": row.event_type,
            },
        )
        for row in connection.execute(select(*columns).where(Event.id == int(text)).limit(limit))
    ]


SEARCHES: Final[Sequence[Search]] = (_by_number,)
