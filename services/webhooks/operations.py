"""The operations of the service: one public function per RPC and per consumed fact."""

import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from sqlalchemy.orm import Session
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from kit.base import request_id
from kit.base.clock import monotonic_seconds
from kit.base.ids import new_id
from kit.db.database import after_commit, retry_conflicts
from kit.observe import tracing
from kit.rpc import deadline, values
from kit.work.worker import Outage
from services.webhooks import errors
from services.webhooks.delivery.engine import worker_name
from services.webhooks.delivery.seals import REPLACED
from services.webhooks.domain import (
    EventTerms,
    FinishedInvoice,
    ResendConflict,
    ResendTooSoon,
    destination_of,
    may_resend,
    terms_of,
)
from services.webhooks.store import books, claims, events, retention
from services.webhooks.store.events import Backlog, InvoiceEvents
from services.webhooks.store.retention import Pruned
from services.webhooks.store.stages import Claimed, Outcome, Recorded, Shipment
from services.webhooks.store.views import EventHistory, EventView
from services.webhooks.wiring import Deps

log = structlog.get_logger(__name__)

STUCK_DEFAULT_SECONDS = 60
RECORD_SECONDS = 5.0
"""Longest time that a resend waits for a database that went away after the request: a restart takes less."""
PRUNE_ROWS = 100
PRUNE_REST = 19
"""The pause after a batch is this many times the time of the batch: one delivery in twenty meets a small batch."""
PRUNE_SECONDS = 2.0
"""Longest time that one call deletes and pauses."""
PRUNE_MOST_DAYS = 36_500


# -- the consumed fact


def queue_webhook(deps: Deps, tx: Session, invoice: FinishedInvoice) -> None:
    """Adds the event of a finished invoice that has a callback URL, due at once. A second call changes nothing.

    If no process of this service made the invoice's row, it gets the content of the true event.
    """
    if invoice.callback_url is None:
        return
    terms = terms_of(invoice, invoice.callback_url)
    seal = deps.seals.seal(terms)
    event_id = events.add_event(
        tx,
        terms,
        seal=seal,
        now=deps.clock.now(),
        request_id=request_id.current() or None,
        traceparent=tracing.traceparent() or None,
    )
    if event_id is None:
        _make_true(deps, tx, terms, seal)
        return
    after_commit(tx, deps.wake.set)
    log.info(
        "webhook_queued",
        event_id=event_id,
        event_type=invoice.event_type,
        invoice_id=str(invoice.invoice_id),
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
    log.error(
        "webhook_event_replaced",
        event_id=found.event_id,
        invoice_id=str(terms.invoice_id),
        payload_event_id=str(found.terms.payload_event_id),
    )


# -- the history


def list_invoice_events(deps: Deps, *, merchant_id: str, invoice_id: str) -> list[EventHistory]:
    """Returns the events of the merchant's invoice, newest first. An empty merchant id means any: for operators."""
    merchant = values.uuid("merchant_id", merchant_id) if merchant_id else None
    invoice = values.uuid("invoice_id", invoice_id)
    with deps.db.transaction() as tx:
        return events.histories_of_invoice(tx, merchant_id=merchant, invoice_id=invoice)


def get_event(deps: Deps, *, event_id: int) -> EventHistory:
    """Raises WEBHOOK_EVENT_NOT_FOUND."""
    with deps.db.transaction() as tx:
        history = events.event_history(tx, event_id)
    if history is None:
        raise errors.event_not_found()
    return history


# -- the manual resend


@dataclass(frozen=True, kw_only=True)
class Resent:
    """A manual attempt that was made and recorded."""

    attempt_id: int
    outcome: Outcome


def resend_latest(deps: Deps, *, merchant_id: str, invoice_id: str) -> Resent:
    """Sends the invoice's latest event once, now, whatever its status. An empty merchant id means any merchant: for
    operators.

    A success ends the automatic retries; a failure leaves status and schedule as they are. Raises WEBHOOK_NOT_FOUND,
    WEBHOOK_RESEND_CONFLICT, WEBHOOK_RESEND_COOLDOWN, in this order; RATE_LIMITED while too many resends of the merchant
    wait for their receivers; and DB_UNAVAILABLE while merchants is away. DB_UNAVAILABLE also when the request went out
    and the database then stayed away: the history lacks the attempt, and a pending event is sent again once its lease
    has run out.
    """
    merchant = values.uuid("merchant_id", merchant_id) if merchant_id else None
    invoice = values.uuid("invoice_id", invoice_id)
    claimed = replace(
        _claim_latest(deps, merchant_id=merchant, invoice_id=invoice),
        request_id=request_id.current(),  # of the caller's request, not of the one that led to the event
        traceparent=tracing.traceparent(),
    )
    outcome = _attempt(deps, claimed)
    recorded = _recorded(deps, outcome)
    # The event may have become due during the resend, and the engine could not claim it.
    deps.wake.set()
    if not recorded:  # this process outlived its lease; the result of the later claim stands
        raise errors.resend_conflict()
    return Resent(attempt_id=recorded[0].attempt_id, outcome=outcome)


@retry_conflicts
def _claim_latest(deps: Deps, *, merchant_id: UUID | None, invoice_id: UUID) -> Claimed:
    now = deps.clock.now()
    until = now + timedelta(seconds=deps.settings.lease_seconds)
    with deps.db.transaction() as tx:
        event = events.latest_event_locked(tx, merchant_id=merchant_id, invoice_id=invoice_id)
        if event is None:
            raise errors.webhook_not_found()
        decision = may_resend(
            now=now,
            lease_until=event.lease_until,
            last_manual_at=event.last_manual_at,
            cooldown_seconds=deps.settings.webhook_resend_cooldown_seconds,
        )
        match decision:
            case ResendConflict():
                raise errors.resend_conflict()
            case ResendTooSoon(retry_after_seconds):
                raise errors.resend_cooldown(retry_after_seconds)
        lease = claims.Lease(token=new_id(), worker=f"{worker_name()}:resend", now=now, until=until)
        return claims.claim_for_resend(tx, event.id, lease)


def _attempt(deps: Deps, claimed: Claimed) -> Outcome:
    """Sends the event. An error before there is an outcome gives the claim back."""
    try:
        with deps.resend_turns.turn(str(claimed.terms.merchant_id)):
            key = (claimed.terms.merchant_id, claimed.terms.key_id)
            secret = deps.merchants.signing_secrets([key]).get(key)
            return deps.courier.send(Shipment(claimed, secret))
    except BaseException:
        with suppress(Outage):  # the lease runs out by itself; the first error is the one to raise
            _release(deps, claimed)
        raise


def _recorded(deps: Deps, outcome: Outcome) -> list[Recorded]:
    """Records the outcome, if the database comes back in time: the receiver may already have acted on the request."""
    trying = Retrying(
        retry=retry_if_exception_type(Outage),
        stop=stop_after_delay(RECORD_SECONDS),
        wait=wait_random_exponential(multiplier=0.1, max=1),
        reraise=True,
    )
    try:
        for attempt in trying:
            with attempt:
                recorded = deps.recorder.record([outcome], again=attempt.retry_state.attempt_number > 1)
    except Outage:
        log.error(
            "webhook_resend_unrecorded", event_id=outcome.claimed.event_id, http_status=outcome.http_status
        )
        raise
    return recorded


def _release(deps: Deps, claimed: Claimed) -> None:
    with deps.db.autocommit() as connection:
        claims.release(connection, [claimed])


# -- verification


def check_invoices(
    deps: Deps, *, invoice_ids: Sequence[str], facts: Sequence[FinishedInvoice] = ()
) -> list[InvoiceEvents]:
    """Returns the number of events of each of these invoices (at most 1000); those without events are left out.
    `facts` of some of them add the differences between their events and the events that the facts would make.
    """
    values.at_most("invoice_ids", invoice_ids, values.LIST_MOST_ROWS)
    values.at_most("facts", facts, values.LIST_MOST_ROWS)
    ids = [values.uuid("invoice_ids", each) for each in invoice_ids]
    with deps.db.autocommit() as connection:
        found = events.events_of_invoices(connection, ids)
        differences = books.differences(connection, facts, deps.seals.flaw) if facts else {}
    return [replace(each, differences=differences.get(each.invoice_id, ())) for each in found]


def list_event_invoices(deps: Deps, *, after_invoice_id: str, limit: int) -> Sequence[UUID]:
    """Invoices that have an event, in the order of their ids, after the given one ("" is the start)."""
    values.whole_number("limit", limit, least=1, most=values.LIST_MOST_ROWS)
    after = values.uuid("after_invoice_id", after_invoice_id) if after_invoice_id else UUID(int=0)
    with deps.db.autocommit() as connection:
        return books.invoices_with_event(connection, after=after, limit=limit)


def list_stuck_events(deps: Deps, *, overdue_seconds: int, limit: int) -> Sequence[EventView]:
    """Returns pending events that no worker has claimed for longer than `overdue_seconds` (0: 60), the oldest first.

    At most `limit` (1 to 1000, 0: 100), without payload and attempts.
    """
    limit = values.rows(limit)
    with deps.db.transaction() as tx:
        return events.stuck_events(tx, overdue_since=_before_now(deps, overdue_seconds), limit=limit)


@retry_conflicts
def reschedule_stuck_events(deps: Deps, *, overdue_seconds: int) -> int:
    """Makes up to 1000 due now, the longest overdue first; returns their number."""
    overdue_since = _before_now(deps, overdue_seconds)
    with deps.db.transaction() as tx:
        after_commit(tx, deps.wake.set)
        return events.reschedule_stuck_events(
            tx, overdue_since=overdue_since, now=deps.clock.now(), limit=values.LIST_MOST_ROWS
        )


def _before_now(deps: Deps, overdue_seconds: int) -> datetime:
    values.whole_number("overdue_seconds", overdue_seconds, least=0)
    return deps.clock.now() - timedelta(seconds=overdue_seconds or STUCK_DEFAULT_SECONDS)


# -- retention


def prune_attempts(deps: Deps, *, older_than_days: int, after: int) -> Pruned:
    """Deletes older attempts of finished events, from the oldest after number `after` on, in small batches with pauses,
    for at most `PRUNE_SECONDS`. If `more`, call again with `after=last_id`.
    """
    values.whole_number("older_than_days", older_than_days, least=1, most=PRUNE_MOST_DAYS)
    values.whole_number("after_attempt_id", after, least=0)
    before = deps.clock.now() - timedelta(days=older_than_days)
    left_seconds = deadline.remaining_seconds()
    until = monotonic_seconds() + min(
        PRUNE_SECONDS, PRUNE_SECONDS if left_seconds is None else left_seconds / 2
    )
    deleted, rest = 0, threading.Event()
    while True:
        started = monotonic_seconds()
        with deps.db.transaction() as tx:
            pruned = retention.prune_attempts(tx, before=before, after=after, limit=PRUNE_ROWS)
        deleted, after = deleted + pruned.deleted, pruned.last_id
        if not pruned.more:
            break
        ended = monotonic_seconds()
        rest.wait(min(PRUNE_REST * (ended - started), until - ended))
        if monotonic_seconds() >= until:
            break
    if deleted:
        log.info("webhook_attempts_pruned", deleted=deleted, older_than_days=older_than_days)
    return Pruned(deleted, after, pruned.more)


# -- gauges


def backlog(deps: Deps) -> Backlog:
    """Returns the numbers of events that wait and are under way, for `fiatgate status`."""
    with deps.db.autocommit() as connection:
        return events.backlog(connection, now=deps.clock.now())
