"""The search: webhook events by their number, for members also by the id that the webhook carries."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, select

from kit.base.ids import parse_id
from kit.db.finding import Found, OwnSearch, Part, Search
from services.webhooks.models import Event

_DIGITS_MOST: Final = 18


def _events(
    connection: Connection, conditions: Sequence[ColumnElement[bool]], limit: int, place: str, column: str
) -> Sequence[Found]:
    columns = (
        Event.id,
        Event.payload_event_id,
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
            field=place,
            value=str(getattr(row, column)),
            status=row.status,
            created_at=row.created_at,
            facts={
                "merchant_id": str(row.merchant_id),
                "invoice_id": str(row.invoice_id),
                "event_type": row.event_type,
            },
        )
        for row in connection.execute(select(*columns).where(*conditions).limit(limit))
    ]


def _by_number(connection: Connection, text: str, limit: int, *more: ColumnElement[bool]) -> Sequence[Found]:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MOST):
        return ()
    return _events(connection, [Event.id == int(text), *more], limit, "number", "id")


SEARCHES: Final[Sequence[Search]] = (_by_number,)


# -- one merchant's events


def _own_by_number(connection: Connection, merchant_id: UUID, text: str, limit: int) -> Part:
    return Part(_by_number(connection, text, limit, Event.merchant_id == merchant_id))


def _own_by_event_id(connection: Connection, merchant_id: UUID, text: str, limit: int) -> Part:
    id = parse_id(text)
    if id is None:
        return Part()
    conditions = [Event.payload_event_id == id, Event.merchant_id == merchant_id]
    return Part(_events(connection, conditions, limit, "event_id", "payload_event_id"))


OWN_SEARCHES: Final[Sequence[OwnSearch]] = (_own_by_number, _own_by_event_id)
