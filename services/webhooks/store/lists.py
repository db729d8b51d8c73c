"""The list of events, of all merchants or of one, page by page."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, literal, select, tuple_

from kit.db.database import table_of
from kit.db.lists import in_span, stands_after
from kit.db.rows import Rows
from services.webhooks.domain import EventStatus
from services.webhooks.models import Event
from services.webhooks.store.views import EventView

WALK_MOST: Final = 20_000
"""The most events that one page of a search by type, or by a merchant's deliveries, reads."""

_WITHOUT_PAYLOAD: Final = Rows(EventView, table_of(Event), payload=literal(b""))
_NEWEST_FIRST: Final = (Event.created_at.desc(), Event.id.desc())


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """The events of a list; None is no condition.

    attempted  whether an attempt was made
    after      the place after which the page begins
    """

    status: EventStatus | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    merchant_id: UUID | None = None
    event_type: str | None = None
    invoice_id: UUID | None = None
    attempted: bool | None = None
    after: tuple[datetime, int] | None = None

    @property
    def walks(self) -> bool:
        """Whether no index has the chosen events alone: others, of the same merchant if one is given, are read too."""
        is_few = self.status in (EventStatus.PENDING, EventStatus.DEAD) or self.invoice_id is not None
        of_merchant = None if self.merchant_id is None else self.status
        return not is_few and any(
            value is not None for value in (self.event_type, self.attempted, of_merchant)
        )


def newest_events(connection: Connection, wanted: EventFilter, *, limit: int) -> list[EventView]:
    """Returns events without their payload, newest first. A search that `walks` reads at most WALK_MOST.

    An invoice has a unique index, and a status other than success `ix_events_list_unsent`. All others have the index
    of the order: `ix_events_list`, or `ix_events_merchant`.
    """
    query = select(*_WITHOUT_PAYLOAD.columns).where(*_conditions(wanted))
    if wanted.walks and (end := walk_end(connection, wanted)):
        query = query.where(tuple_(Event.created_at, Event.id) >= tuple_(*end))
    return _WITHOUT_PAYLOAD.all(connection.execute(query.order_by(*_NEWEST_FIRST).limit(limit)))


def walk_end(connection: Connection, wanted: EventFilter) -> tuple[datetime, int] | None:
    """Returns the place of the last event that a search that `walks` reads; None when it reads to the end."""
    query = select(Event.created_at, Event.id).where(*_in_place(wanted)).order_by(*_NEWEST_FIRST)
    row = connection.execute(query.offset(WALK_MOST - 1).limit(1)).one_or_none()
    return None if row is None else (row.created_at, row.id)


def place_of_event(
    connection: Connection, event_id: int, merchant_id: UUID | None = None
) -> tuple[datetime, int] | None:
    """Returns the place of the event in a list, for `EventFilter.after`. With a merchant, only of its own."""
    query = select(Event.created_at, Event.id).where(Event.id == event_id)
    if merchant_id is not None:
        query = query.where(Event.merchant_id == merchant_id)
    row = connection.execute(query).one_or_none()
    return None if row is None else (row.created_at, row.id)


def _in_place(wanted: EventFilter) -> Iterator[ColumnElement[bool]]:
    yield from in_span(Event.created_at, wanted.created_from, wanted.created_before)
    if wanted.merchant_id is not None:
        yield Event.merchant_id == wanted.merchant_id
    if wanted.after is not None:
        yield stands_after((Event.created_at, Event.id), wanted.after)


def _conditions(wanted: EventFilter) -> Iterator[ColumnElement[bool]]:
    yield from _in_place(wanted)
    equal = (
        (Event.status, wanted.status),
        (Event.event_type, wanted.event_type),
        (Event.invoice_id, wanted.invoice_id),
    )
    yield from (field == value for field, value in equal if value is not None)
    if wanted.attempted is not None:
        yield (Event.auto_attempts + Event.manual_attempts > 0) == wanted.attempted
