"""The steps that time takes, for many invoices in one transaction: expiry, and appeals of overdue confirmations.

They are the steps of `lifecycle`, decided by the same rules under the same locks, and they write the same rows; only
many rows with one statement. A batch waits for no lock: it leaves out an invoice that another transaction holds, and
gives up when it can't lock a requisite at its end. So it may hold several requisites, and it takes part in no deadlock.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import set_committed_value

from kit.base.ids import new_id
from kit.db.database import after_commit
from kit.events.outbox import Fact, announce_all
from services.invoices import events
from services.invoices.domain import states
from services.invoices.domain.states import DealState, InvoiceStatus, Trigger
from services.invoices.models import Deal, Invoice, Outbox
from services.invoices.operations import lifecycle
from services.invoices.store import batches
from services.invoices.wiring import Deps

_EXPIRED = states.TRANSITIONS[states.AWAITING_PAYMENT, Trigger.EXPIRE]
_APPEALED = states.TRANSITIONS[states.AWAITING_CONFIRMATION, Trigger.CONFIRMATION_OVERDUE]


class RequisiteHeld(Exception):
    """Another transaction holds a requisite that the batch has to free."""


def expire_overdue(tx: Session, deps: Deps, invoice_ids: Sequence[UUID], now: datetime) -> int:
    """Expires those of these invoices that are overdue and free; returns their number. Raises `RequisiteHeld`."""
    due = [
        (invoice, deal)
        for invoice, deal in _locked(tx, invoice_ids)
        if lifecycle.is_overdue(invoice, deal, now)
    ]
    ended = [deal for _, deal in due if deal is not None]
    if ended:
        _step(tx, ended, _EXPIRED.target, now=now, is_final=True)
    if due:
        _finish(tx, deps, due, now)
    # Last: a customer who chooses a method waits for these locks.
    if ended and not batches.release_requisites(tx, [deal.requisite_id for deal in ended]):
        raise RequisiteHeld
    return len(due)


def appeal_overdue(tx: Session, deps: Deps, invoice_ids: Sequence[UUID], now: datetime) -> int:
    """Makes appeals of those of these invoices' deals whose confirmation is overdue; returns their number."""
    due = [deal for _, deal in _locked(tx, invoice_ids) if lifecycle.is_confirmation_overdue(deal, now)]
    if due:
        _step(tx, due, _APPEALED.target, now=now, is_final=False)
        _send_hints(tx, deps, [deal.invoice_id for deal in due])
    return len(due)


def _locked(tx: Session, invoice_ids: Sequence[UUID]) -> list[tuple[Invoice, Deal | None]]:
    invoices = batches.locked_invoices(tx, invoice_ids)
    deals = batches.newest_deals(tx, invoices)
    return [(invoice, deals[invoice.deal_id] if invoice.deal_id else None) for invoice in invoices]


def _step(tx: Session, deals: Sequence[Deal], target: DealState, *, now: datetime, is_final: bool) -> None:
    batches.step_deals(tx, deals, target, is_final=is_final, now=now, actor=lifecycle.BY_TIME)
    for deal in deals:
        set_committed_value(deal, "status", target.status)
        set_committed_value(deal, "sub_status", target.sub_status)


def _finish(tx: Session, deps: Deps, due: Sequence[tuple[Invoice, Deal | None]], now: datetime) -> None:
    event_ids = {invoice.id: new_id() for invoice, _ in due}
    batches.finish_invoices(tx, event_ids, InvoiceStatus.EXPIRED, now=now)
    facts = []
    for invoice, deal in due:
        set_committed_value(invoice, "status", InvoiceStatus.EXPIRED)
        set_committed_value(invoice, "finished_at", now)
        set_committed_value(invoice, "event_id", event_ids[invoice.id])
        facts.append(Fact(event_ids[invoice.id], events.invoice_finished(invoice, deal)))
    announce_all(
        tx, Outbox, facts, subject=events.FINISHED, at=now, announced=deps.announced, signer=deps.signer
    )
    _send_hints(tx, deps, list(event_ids))


def _send_hints(tx: Session, deps: Deps, invoice_ids: Sequence[UUID]) -> None:
    after_commit(tx, deps.bus.hint_all, [events.changed_subject(id) for id in invoice_ids])
