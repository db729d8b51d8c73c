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

SHOWN: Final = 200
"""Characters of a value in a difference."""
MOST_NAMES: Final = 20
"""Members of a payload that are named: a payload has fewer."""

# Retention deletes the oldest attempts of events that are not pending, and none of the last day.
_STATE_FOLLOWS_THE_ATTEMPTS = """
SELECT events.invoice_id AS id, field, found, due
FROM events JOIN LATERAL (
  SELECT CAST(auto_attempts AS bigint) + manual_attempts AS counted, coalesce(max(try_number), 0) AS newest,
         count(*) FILTER (WHERE trigger = 'auto') AS automatic, coalesce(min(try_number), 1) > 1 AS pruned,
         coalesce(bool_or(status = 'success'), false) AS succeeded
  FROM attempts WHERE event_id = events.id
) AS tried ON true
JOIN LATERAL (VALUES
  ('status', status, 'success, for an attempt succeeded', succeeded AND status <> 'success'),
  ('status', status, 'no success, for no attempt succeeded', status = 'success' AND NOT (succeeded OR pruned)),
  ('status', status, 'pending, for no automatic attempt failed', status = 'dead' AND auto_attempts = 0),
  ('attempts', counted || ', automatic ' || auto_attempts, newest || ', automatic at most ' || automatic,
   counted <> newest OR (auto_attempts > automatic AND NOT pruned))
) AS value (field, found, due, is_wrong) ON is_wrong
WHERE events.invoice_id > CAST(:first AS uuid) AND events.invoice_id <= CAST(:last AS uuid)
  AND NOT (newest = 0 AND counted > 0 AND status <> 'pending' AND created_at < now() - interval '1 day')
"""

# A delay may be 7 days (config.py), a lease 11 minutes; an hour and a minute more for jitter and clocks.
_TIMES_COME = """
SELECT invoice_id AS id, field, CAST(found AS text) AS found, due
FROM events JOIN LATERAL (VALUES
  ('next_retry_at', next_retry_at, interval '7 days 1 hour', 'within 7 days, the longest delay of a retry'),
  ('lease_until', lease_until, interval '1 hour', 'within an hour, longer than any lease'),
  ('last_manual_at', last_manual_at, interval '1 minute', 'in the past')
) AS time (field, found, most, due) ON found > now() + most
WHERE invoice_id > CAST(:first AS uuid) AND invoice_id <= CAST(:last AS uuid)
"""

PARTS: Final = (
    schema_part("webhooks"),
    Part(
        name="events with their attempts",
        one="webhook event of invoice",
        table="events",
        key="invoice_id",
        follows=(_STATE_FOLLOWS_THE_ATTEMPTS, _TIMES_COME),
    ),
)


@dataclass(frozen=True, slots=True)
class Difference:
    """A field in which an event differs from its fact."""

    field: str
    found: str
    due: str


def _difference(field: str, found: object, due: object) -> Difference:
    """A payload that SQL wrote may hold what no answer can: long values, halves of characters."""
    return Difference(*(str(each)[:SHOWN].encode(errors="replace").decode() for each in (field, found, due)))


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
        yield _difference("seal", flaw, "that of webhooks: changed past the service, and not sent")


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
            yield _difference(field, getattr(event, field), value)
    body = payload_of(fact)
    # The seal says whether the mark of test mode is right: events from before it have none.
    if event.payload not in (body, payload_of(fact, is_test=True)):
        yield from _payload_differences(event.payload, body)


def _payload_differences(found: bytes, due: bytes) -> Iterator[Difference]:
    """Yields one difference per member; one for the whole payload when it is no object, or differs only in form."""
    expected: dict[str, Any] = json.loads(due)
    try:
        members = json.loads(found)
        names = [name for name in expected | members if members.get(name) != expected.get(name)]
    except (ValueError, TypeError, AttributeError, RecursionError):
        names = []
    for name in names[:MOST_NAMES]:
        yield _difference(f"payload {name}", members.get(name), expected.get(name))
    if not names:
        yield _difference("payload", found.decode(errors="replace"), due.decode())


_INVOICES: Final = text("""
SELECT invoice_id FROM events WHERE CAST(:after AS uuid) IS NULL OR invoice_id > CAST(:after AS uuid)
ORDER BY invoice_id LIMIT :limit
""")


def invoices_with_event(connection: Connection, *, after: UUID | None, limit: int) -> Sequence[UUID]:
    """Invoices in the order of their ids."""
    return connection.scalars(_INVOICES, {"after": after, "limit": limit}).all()
