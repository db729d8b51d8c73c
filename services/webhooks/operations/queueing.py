"""The consumed fact: a finished invoice becomes an event."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.orm import Session

from kit.base import request_id
from kit.db.database import after_commit
from kit.observe import tracing
from kit.observe.log import get_logger
from services.webhooks.delivery.seals import REPLACED
from services.webhooks.domain import (
    EventStatus,
    EventTerms,
    FinishedInvoice,
    Trigger,
    destination_of,
    terms_of,
)
from services.webhooks.store import events
from services.webhooks.store.claims import Lease
from services.webhooks.store.events import NewEvent
from services.webhooks.store.stages import Claimed
from services.webhooks.wiring import Deps

_log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A finished invoice, with the request and the span that ended it, if they are known."""

    invoice: FinishedInvoice
    request_id: str = ""
    traceparent: str = ""


def queue_webhook(deps: Deps, tx: Session, invoice: FinishedInvoice) -> None:
    """Adds the event of a finished invoice that has a callback URL, due at once. A second call changes nothing.

    If no process of this service made the invoice's row, it gets the content of the true event.
    """
    cause = Cause(invoice=invoice, request_id=request_id.current(), traceparent=tracing.traceparent())
    queue_webhooks(deps, tx, [cause])


def queue_webhooks(deps: Deps, tx: Session, causes: Sequence[Cause]) -> None:
    """Does the same for many invoices, which one statement writes."""
    new = []
    for cause in causes:
        if cause.invoice.callback_url is not None:
            is_test = deps.settings.is_test
            terms = terms_of(cause.invoice, cause.invoice.callback_url, is_test=is_test)
            new.append(
                NewEvent(
                    terms=terms,
                    seal=deps.seals.seal(terms),
                    lease=deps.fresh.lease(tx, terms),
                    request_id=cause.request_id or None,
                    traceparent=cause.traceparent or None,
                )
            )
    now = deps.clock.now()
    events.take_turns(tx, (event.terms.merchant_id for event in new))
    # The same invoice may come twice. Only the first one is written and passed on, or its webhook would be sent twice.
    firsts = {event.terms.invoice_id: event for event in reversed(new)}
    added = events.add_events(tx, list(firsts.values()), now=now) if new else {}
    for event in new:
        event_id = added.pop(event.terms.invoice_id, None)
        if event_id is None:
            _make_true(deps, tx, event.terms, event.seal)
            continue
        if event.lease is None:
            after_commit(tx, deps.wake.set)
        else:
            deps.fresh.add(tx, _claimed(event_id, event, event.lease, due_at=now))
        _log.info(
            "webhook_queued",
            event_id=event_id,
            event_type=event.terms.event_type,
            invoice_id=str(event.terms.invoice_id),
            **({"request_id": event.request_id} if event.request_id else {}),
        )


def _claimed(event_id: int, event: NewEvent, lease: Lease, *, due_at: datetime) -> Claimed:
    """Returns an event that was written under the lease as if it were claimed."""
    return Claimed(
        event_id=event_id,
        lease_token=lease.token,
        lease_until=lease.until,
        trigger=Trigger.AUTO,
        terms=event.terms,
        status=EventStatus.PENDING,
        next_retry_at=due_at,
        auto_attempts=0,
        seal=event.seal,
        request_id=event.request_id or "",
        traceparent=event.traceparent or "",
    )


def _make_true(deps: Deps, tx: Session, terms: EventTerms, seal: str) -> None:
    """Seals an event that has no right seal, after giving it the content of the true event if it differs. Corrects
    the destination, which no seal covers.
    """
    found = events.sealed_event_locked(tx, terms.invoice_id)
    if found is None:
        return
    if deps.seals.is_right(found.terms, found.seal):  # a seal covers all terms but the destination
        terms = replace(found.terms, destination=destination_of(found.terms.callback_url))
        if found.terms == terms:
            return
        seal = deps.seals.seal(terms)
        events.unseal_event(tx, found.event_id)  # the database keeps the destination unless the seal changes
    if replace(found.terms, destination=terms.destination) == terms:
        if events.seal_event(tx, found.event_id, seal, terms.destination, now=deps.clock.now()):
            after_commit(tx, deps.wake.set)
        return
    events.replace_event(tx, found.event_id, terms, seal=seal, now=deps.clock.now())
    after_commit(tx, deps.wake.set)
    REPLACED.inc()
    _log.error(
        "webhook_event_replaced",
        event_id=found.event_id,
        invoice_id=str(terms.invoice_id),
        payload_event_id=str(found.terms.payload_event_id),
    )
