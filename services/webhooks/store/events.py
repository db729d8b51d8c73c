"""Events and their history, for RPCs and the consumer."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    func,
    literal,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by
from sqlalchemy.orm import Session

from kit.db import prepared
from kit.db.database import as_json, table_of
from kit.db.prepared import Prepared
from kit.db.rows import Rows
from services.webhooks.domain import (
    HELD_BACK_ERROR,
    EventStatus,
    EventTerms,
    Trigger,
)
from services.webhooks.models import Attempt, Event
from services.webhooks.store.books import Difference
from services.webhooks.store.claims import Lease
from services.webhooks.store.queues import NEWLY_DEAD
from services.webhooks.store.results import MOST_COUNTED
from services.webhooks.store.views import AttemptView, EventHistory, EventView

HISTORY_ATTEMPTS = 100
"""The number of an event's newest attempts in an answer, which stays below gRPC's 4 MiB after any number of resends."""

_FREE: Final[dict[str, Any]] = {
    "locked_at": None,
    "locked_by": None,
    "lease_token": None,
    "lease_until": None,
}


_VIEWS: Final = Rows(EventView, table_of(Event))
_WITHOUT_PAYLOAD: Final = Rows(EventView, table_of(Event), payload=literal(b""))
_ATTEMPT_VIEWS: Final = Rows(AttemptView, table_of(Attempt))

_SEALED: Final = table_of(Event)
_TERMS: Final = Rows(EventTerms, _SEALED)


_TERM_NAMES: Final = tuple(field.name for field in fields(EventTerms))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEvent:
    """An event that is not stored yet. Under a lease it is its holder's from the beginning, as if it were claimed."""

    terms: EventTerms
    seal: str
    lease: Lease | None = None
    request_id: str | None = None
    traceparent: str | None = None


_COLUMNS: Final = (
    "payload_event_id",
    "invoice_id",
    "merchant_id",
    "key_id",
    "event_type",
    "callback_url",
    "destination",
    "payload",
    "status",
    "auto_attempts",
    "manual_attempts",
    "next_retry_at",
    "created_at",
    "updated_at",
    *_FREE,
    "request_id",
    "traceparent",
    "seal",
)


def lock_tests(tx: Session, merchant_id: UUID) -> None:
    """Lets one transaction at a time look for the merchant's last test event and write a further one."""
    tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"tests {merchant_id}", 0))))


_TAKE_TURNS: Final[Prepared[tuple[None]]] = Prepared(
    "take_turns",
    "SELECT pg_advisory_xact_lock(hashtextextended('events ' || merchant, 0))"
    " FROM unnest(CAST(:merchants AS text[])) AS merchant",
    {"merchants": "text[]"},
    lambda locked: (locked,),
)


def take_turns(tx: Session, merchants: Iterable[UUID]) -> None:
    """Lets one transaction at a time add events of a merchant: their ids then become visible in order, and who reads
    all after the last id that it saw misses none.
    """
    prepared.rows(tx, _TAKE_TURNS, {"merchants": sorted({str(merchant) for merchant in merchants})})


# In the order of invoices: two transactions with the same ones in different orders would wait for each other.
_LISTED: Final = ", ".join(_COLUMNS)
_ADD: Final[Prepared[tuple[UUID, int]]] = Prepared(
    "add_events",
    f"INSERT INTO events ({_LISTED})"  # noqa: S608  constants
    f" SELECT {_LISTED} FROM jsonb_populate_recordset(NULL::events, CAST(:rows AS jsonb)) ORDER BY invoice_id"
    " ON CONFLICT (invoice_id) DO NOTHING RETURNING invoice_id, id",
    {"rows": "text"},
    lambda invoice_id, id: (invoice_id, id),
)


def add_events(tx: Session, events: Sequence[NewEvent], *, now: datetime) -> dict[UUID, int]:
    """Stores the events, due at once; returns their ids by invoice. Leaves out invoices that have an event already."""
    same = {
        "status": EventStatus.PENDING,
        "auto_attempts": 0,
        "manual_attempts": 0,
        "next_retry_at": now,
        "created_at": now,
        "updated_at": now,
    }
    # `asdict` would copy each value, which takes as long as the rest.
    rows = [
        {name: getattr(event.terms, name) for name in _TERM_NAMES}
        | same
        | _lease_columns(event.lease)
        | {"seal": event.seal, "request_id": event.request_id, "traceparent": event.traceparent}
        for event in events
    ]
    return dict(prepared.rows(tx, _ADD, {"rows": as_json(rows)}))


def _lease_columns(lease: Lease | None) -> dict[str, Any]:
    if lease is None:
        return _FREE
    return {
        "locked_at": lease.now,
        "locked_by": lease.worker,
        "lease_token": lease.token,
        "lease_until": lease.until,
    }


@dataclass(frozen=True, slots=True)
class SealedEvent:
    event_id: int
    terms: EventTerms
    seal: str | None


def sealed_event_locked(tx: Session, invoice_id: UUID) -> SealedEvent | None:
    """Returns the invoice's event, its row locked."""
    of_invoice = select(_SEALED).where(_SEALED.c.invoice_id == invoice_id).with_for_update()
    row = tx.execute(of_invoice).one_or_none()
    if row is None:
        return None
    return SealedEvent(row.id, _TERMS.of(row), row.seal)


_ATTEMPTS = table_of(Attempt)
_OF_EVENT: Final = _ATTEMPTS.c.event_id == _SEALED.c.id
_NEWEST_NUMBER: Final = select(func.coalesce(func.max(_ATTEMPTS.c.try_number), 0)).where(
    _OF_EVENT, _ATTEMPTS.c.try_number < MOST_COUNTED
)
_NEWEST_ERROR: Final = (
    select(_ATTEMPTS.c.error_message)
    .where(_OF_EVENT, _ATTEMPTS.c.trigger == Trigger.AUTO)
    .order_by(_ATTEMPTS.c.try_number.desc())
    .limit(1)
)


def _due_anew(now: datetime) -> dict[str, Any]:
    """Values that make an event due now, with all its retries. Its earlier attempts count as manual ones."""
    return _FREE | {
        "status": EventStatus.PENDING,
        "next_retry_at": now,
        "auto_attempts": 0,
        "manual_attempts": _NEWEST_NUMBER.scalar_subquery(),
        "last_manual_at": None,
        "updated_at": now,
    }


def unseal_event(tx: Session, event_id: int) -> None:
    tx.execute(update(_SEALED).where(_SEALED.c.id == event_id).values(seal=None))


def seal_event(tx: Session, event_id: int, seal: str, destination: str, *, now: datetime) -> bool:
    """Seals the event with this destination. Returns whether it is due again, because its last automatic attempt was
    held back.

    A delivered event is never due again: the merchant may repeat a resend that was held back.
    """
    sealed = update(_SEALED).where(_SEALED.c.id == event_id)
    held_back = sealed.where(
        _SEALED.c.status != EventStatus.SUCCESS, _NEWEST_ERROR.scalar_subquery() == HELD_BACK_ERROR
    )
    new = {"seal": seal, "destination": destination}
    if tx.execute(held_back.values(_due_anew(now) | new).returning(_SEALED.c.id)).first():
        return True
    tx.execute(sealed.values(new))
    return False


def replace_event(tx: Session, event_id: int, terms: EventTerms, *, seal: str, now: datetime) -> None:
    """Replaces the event's content and makes it due now, whatever was done with the former content."""
    new = asdict(terms)
    del new["invoice_id"]
    values = new | _due_anew(now) | {"seal": seal}
    tx.execute(update(_SEALED).where(_SEALED.c.id == event_id).values(values))


def event_history(tx: Session, event_id: int) -> EventHistory | None:
    event = _VIEWS.one_or_none(tx.execute(select(*_VIEWS.columns).where(Event.id == event_id)))
    return None if event is None else EventHistory(event, _newest_attempts(tx, event.id))


@dataclass(frozen=True, slots=True)
class FollowedEvent:
    """An event of a merchant's list, with the values that its seal is made from."""

    event: EventView
    terms: EventTerms
    seal: str | None


_FOLLOWED: Final = list(dict.fromkeys([*_VIEWS.columns, *_TERMS.columns, _SEALED.c.seal]))


def events_after(connection: Connection, merchant_id: UUID, *, after: int, limit: int) -> list[FollowedEvent]:
    """Returns the merchant's events after this id, in the order of their ids (`ix_events_merchant_order`)."""
    query = select(*_FOLLOWED).where(_SEALED.c.merchant_id == merchant_id, _SEALED.c.id > after)
    rows = connection.execute(query.order_by(_SEALED.c.id).limit(limit))
    return [FollowedEvent(_VIEWS.of(row), _TERMS.of(row), row.seal) for row in rows]


def histories_of_invoice(tx: Session, *, merchant_id: UUID | None, invoice_id: UUID) -> list[EventHistory]:
    """Returns the events of the invoice, newest first. Without a merchant id, of any merchant's invoice."""
    events = _VIEWS.all(tx.execute(_of_invoice(select(*_VIEWS.columns), merchant_id, invoice_id)))
    return [EventHistory(event, _newest_attempts(tx, event.id)) for event in events]


def _of_invoice(query: Select[Any], merchant_id: UUID | None, invoice_id: UUID) -> Select[Any]:
    of_invoice = query.where(Event.invoice_id == invoice_id).order_by(Event.id.desc())
    return of_invoice if merchant_id is None else of_invoice.where(Event.merchant_id == merchant_id)


def _newest_attempts(tx: Session, event_id: int) -> list[AttemptView]:
    attempts = select(*_ATTEMPT_VIEWS.columns).where(Attempt.event_id == event_id)
    newest = attempts.order_by(Attempt.try_number.desc()).limit(HISTORY_ATTEMPTS)
    return _ATTEMPT_VIEWS.all(tx.execute(newest))[::-1]


# -- the manual resend


def latest_event_locked(tx: Session, *, merchant_id: UUID | None, invoice_id: UUID) -> EventView | None:
    """Returns the invoice's newest event without its payload, its row locked until the transaction ends."""
    query = _of_invoice(select(*_WITHOUT_PAYLOAD.columns), merchant_id, invoice_id)
    return _WITHOUT_PAYLOAD.one_or_none(tx.execute(query.limit(1).with_for_update()))


# -- verification


@dataclass(frozen=True, slots=True)
class InvoiceEvents:
    """An invoice's number of events, the payload's id of the newest, and its differences from its fact."""

    invoice_id: UUID
    events: int
    payload_event_id: UUID
    differences: Sequence[Difference] = ()


def events_of_invoices(connection: Connection, invoice_ids: Sequence[UUID]) -> list[InvoiceEvents]:
    """Returns the invoices among these that have events."""
    newest = func.array_agg(aggregate_order_by(Event.payload_event_id, Event.id.desc()))
    found = (
        select(Event.invoice_id, func.count(), newest)
        .where(Event.invoice_id.in_(invoice_ids))
        .group_by(Event.invoice_id)
    )
    return [InvoiceEvents(id, count, ids[0]) for id, count, ids in connection.execute(found)]


def _is_stuck(overdue_since: datetime) -> ColumnElement[bool]:
    """Returns the condition that an event is pending, and neither planned nor leased since `overdue_since`."""
    free = or_(Event.lease_until.is_(None), Event.lease_until < overdue_since)
    overdue = and_(Event.next_retry_at < overdue_since, free)
    return and_(Event.status == literal(EventStatus.PENDING), or_(Event.next_retry_at.is_(None), overdue))


_LONGEST_OVERDUE_FIRST = (Event.next_retry_at.nulls_first(), Event.id)


def stuck_events(tx: Session, *, overdue_since: datetime, limit: int) -> list[EventView]:
    """Returns the stuck events without their payload, the longest overdue first."""
    stuck = select(*_WITHOUT_PAYLOAD.columns).where(_is_stuck(overdue_since))
    return _WITHOUT_PAYLOAD.all(tx.execute(stuck.order_by(*_LONGEST_OVERDUE_FIRST).limit(limit)))


def reschedule_stuck_events(tx: Session, *, overdue_since: datetime, now: datetime, limit: int) -> list[int]:
    """Makes the longest overdue ones due now and removes leases that ran out; returns their ids."""
    stuck = select(Event.id).where(_is_stuck(overdue_since)).order_by(*_LONGEST_OVERDUE_FIRST)
    # Read once: PostgreSQL may read a subquery that locks again, and then change more than the limit.
    some = stuck.limit(limit).with_for_update(skip_locked=True).cte("stuck")
    result = tx.scalars(
        update(Event)
        .where(Event.id.in_(select(some.c.id)))
        .values(next_retry_at=now, updated_at=now, **_FREE)
        .returning(Event.id)
    )
    return list(result)


# -- gauges


@dataclass(frozen=True, slots=True)
class Backlog:
    """The numbers of events that wait, and of due automatic attempts that are under way.

    oldest_undelivered  age of the oldest pending event
    dead                dead events that are no older than a week
    """

    due: int
    oldest_due: timedelta
    oldest_undelivered: timedelta
    in_flight: int
    parked: int
    dead: int


_BACKLOG = text(f"""
SELECT count(*) FILTER (WHERE NOT leased) AS due,
       coalesce(:now - min(next_retry_at) FILTER (WHERE NOT leased), interval '0') AS oldest_due,
       (SELECT coalesce(:now - min(created_at), interval '0') FROM events WHERE status = 'pending')
           AS oldest_undelivered,
       count(*) FILTER (WHERE leased) AS in_flight,
       (SELECT count(*) FROM parked WHERE parked_at IS NOT NULL) AS parked,
       (SELECT count(*) FROM events WHERE {NEWLY_DEAD}) AS dead
FROM (
    SELECT next_retry_at, coalesce(lease_until > :now, false) AS leased
    FROM events
    WHERE status = 'pending' AND next_retry_at <= :now
) AS pending
""")  # noqa: S608  no value of a call


def backlog(connection: Connection, *, now: datetime) -> Backlog:
    return Backlog(*connection.execute(_BACKLOG, {"now": now}).one())
