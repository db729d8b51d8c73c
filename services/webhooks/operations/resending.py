"""The manual resend: one attempt, now, recorded before the answer."""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from kit.audit import acts
from kit.base import request_id
from kit.base.ids import new_id
from kit.db.database import retry_conflicts
from kit.observe import tracing
from kit.observe.log import get_logger
from kit.rpc import values
from kit.work.worker import Outage
from services.webhooks import errors
from services.webhooks.domain import (
    ResendConflict,
    ResendTooSoon,
    may_resend,
)
from services.webhooks.store import claims, events
from services.webhooks.store.stages import Claimed, Outcome, Recorded, Shipment
from services.webhooks.wiring import Deps

_log = get_logger()

RECORD_SECONDS = 5.0
"""Longest time that a resend waits for a database that went away after the request: a restart takes less."""


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
    wait for their receivers; and DB_UNAVAILABLE while identity is away. DB_UNAVAILABLE also when the request went out
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
        lease = claims.Lease(token=new_id(), worker=f"{claims.worker_name()}:resend", now=now, until=until)
        return claims.claim_for_resend(tx, event.id, lease)


def _attempt(deps: Deps, claimed: Claimed) -> Outcome:
    """Sends the event. An error before there is an outcome gives the claim back."""
    try:
        with deps.resend_turns.turn(str(claimed.terms.merchant_id)):
            key = (claimed.terms.merchant_id, claimed.terms.key_id)
            secret = deps.identity.signing_secrets([key]).get(key)
            if acts.by_hand():  # a merchant's program resends its own events as often as it may
                _record_act(deps, claimed)
            return deps.courier.send(Shipment(claimed, secret))
    except BaseException:
        with suppress(Outage):  # the lease runs out by itself; the first error is the one to raise
            _release(deps, claimed)
        raise


@retry_conflicts
def _record_act(deps: Deps, claimed: Claimed) -> None:
    """Writes the act when nothing is left that could refuse the resend: its request follows."""
    terms = claimed.terms
    with deps.db.transaction() as tx:
        acts.record(
            tx,
            "event.resend",
            f"event:{claimed.event_id}",
            merchant_id=terms.merchant_id,
            note=f"invoice {terms.invoice_id}",
        )


def _recorded(deps: Deps, outcome: Outcome) -> list[Recorded]:
    """Records the outcome of a request that was sent; tries again for RECORD_SECONDS while the database is away. Raises
    Outage: the receiver may have acted on a request that the history lacks.
    """
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
        _log.error(
            "webhook_resend_unrecorded", event_id=outcome.claimed.event_id, http_status=outcome.http_status
        )
        raise
    return recorded


def _release(deps: Deps, claimed: Claimed) -> None:
    with deps.db.autocommit() as connection:
        claims.release(connection, [claimed])
