"""Invariants of events and their attempts (kit.db.books), and of an event and the fact that it was made from."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, Select, select, text

from kit.db.books import Part
from kit.db.database import table_of
from kit.db.described import schema_part
from kit.db.rows import Rows
from services.webhooks.domain import EventTerms, FinishedInvoice, destination_of, payload_of
from services.webhooks.models import Event

_STATUS_FOLLOWS_THE_ATTEMPTS = """
SELECT events.invoice_id AS id, 'status' AS field, events.status AS found,
       CASE WHEN succeeded THEN 'success, for an attempt succeeded' ELSE 'no success, for no attempt succeeded' END
         AS due
FROM events JOIN LATERAL (
  SELECT bool_or(status = 'success') AS succeeded, min(try_number) AS oldest
  FROM attempts WHERE event_id = events.id
) AS tried ON true
WHERE events.invoice_id > CAST(:first AS uuid) AND events.invoice_id <= CAST(:last AS uuid)
  AND CASE WHEN events.status = 'success'
           THEN NOT coalesce(succeeded, greatest(auto_attempts, manual_attempts) > 0) AND coalesce(oldest, 1) = 1
           ELSE coalesce(succeeded, false) END
"""

# No delay of a retry may be longer than 7 days (config.py); one hour more for jitter and clocks.
_THE_NEXT_ATTEMPT_COMES = """
SELECT invoice_id AS id, 'next_retry_at' AS field, next_retry_at AS found,
       'within 7 days, the longest delay of a retry' AS due
FROM events
WHERE invoice_id > CAST(:first AS uuid) AND invoice_id <= CAST(:last AS uuid)
  AND next_retry_at > now() + interval '7 days 1 hour'
"""

PARTS: Final = (
    schema_part("webhooks"),
    Part(
        name="events with their attempts",
        one="webhook event of invoice",
        table="events",
        key="invoice_id",
        follows=(_STATUS_FOLLOWS_THE_ATTEMPTS, _THE_NEXT_ATTEMPT_COMES),
    ),
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A field in which an event differs from its fact."""

    field: str
    found: str
    due: str


FlawOf = Callable[[EventTerms, str | None], str | None]

_TERMS: Final = Rows(EventTerms, table_of(Event))
_EVENTS: Final[Select[Any]] = select(*_TERMS.columns, Event.seal)


def differences(
    connection: Connection, facts: Sequence[FinishedInvoice], flaw_of: FlawOf
) -> Mapping[UUID, Sequence[Difference]]:
    """Returns the differences of the events that these facts have, by invoice; `flaw_of` judges their seals."""
    by_invoice = {fact.invoice_id: fact for fact in facts}
    wanted = _EVENTS.where(Event.invoice_id.in_(list(by_invoice)))
    found = connection.execute(wanted)
    return {
        terms.invoice_id: [
            *_differences(terms, by_invoice[terms.invoice_id]),
            *_seal_differences(terms, row.seal, flaw_of),
        ]
        for row in found
        for terms in [_TERMS.of(row)]
    }


def _seal_differences(terms: EventTerms, seal: str | None, flaw_of: FlawOf) -> Iterator[Difference]:
    flaw = flaw_of(terms, seal)
    if flaw is not None:
        yield Difference("seal", flaw, "that of webhooks: changed past the service, and not sent")


def _differences(event: EventTerms, fact: FinishedInvoice) -> Iterator[Difference]:
    due = {
        "payload_event_id": fact.event_id,
        "merchant_id": fact.merchant_id,
        "key_id": fact.key_id,
        "event_type": fact.event_type,
        "callback_url": fact.callback_url,
        "destination": destination_of(event.callback_url),
    }
    for field, value in due.items():
        if getattr(event, field) != value:
            yield Difference(field, str(getattr(event, field)), str(value))
    body = payload_of(fact)
    if event.payload != body:
        yield from _payload_differences(event.payload, body)


def _payload_differences(found: bytes, due: bytes) -> Iterator[Difference]:
    """Yields one difference per member; one for the whole payload when it is no object, or differs only in form."""
    expected: dict[str, Any] = json.loads(due)
    try:
        members = json.loads(found)
        names = [name for name in expected | members if members.get(name) != expected.get(name)]
    except (ValueError, TypeError, AttributeError, RecursionError):
        names = []
    for name in names:
        yield Difference(f"payload {name}", str(members.get(name)), str(expected.get(name)))
    if not names:
        yield Difference("payload", found.decode(errors="replace")[:200], due.decode()[:200])


_INVOICES: Final = text("""
SELECT invoice_id FROM events WHERE CAST(:after AS uuid) IS NULL OR invoice_id > CAST(:after AS uuid)
ORDER BY invoice_id LIMIT :limit
""")


def invoices_with_event(connection: Connection, *, after: UUID | None, limit: int) -> Sequence[UUID]:
    """Invoices in the order of their ids."""
    return connection.scalars(_INVOICES, {"after": after, "limit": limit}).all()
