"""What time does: expiry of invoices and deals, and deals whose confirmation is overdue.

Any number of workers may run these: each takes a batch that the others skip. They ask for what is due by now, so after
a stop over the expiry the first round catches up.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy.orm import Session

from kit.db import retry_conflicts
from services.invoices import domain, store
from services.invoices.domain import InvoiceStatus, Trigger
from services.invoices.models import Deal, Invoice
from services.invoices.operations import lifecycle
from services.invoices.wiring import Deps

BATCH = 100


@retry_conflicts
def expire_invoices(deps: Deps) -> bool:
    """Expire invoices for which no method was chosen in time; true when there may be more."""
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        due = store.waiting_invoices_due(tx, now, BATCH)
        for invoice in due:
            lifecycle.finish(tx, deps, invoice, None, InvoiceStatus.EXPIRED, now=now)
    return len(due) == BATCH


def expire_deals(deps: Deps) -> bool:
    """Expire deals that were not marked paid in time, their invoices with them; true when there may be more."""
    return _advance_due(deps, store.invoices_with_unpaid_deal_due, Trigger.EXPIRE)


def open_overdue_appeals(deps: Deps) -> bool:
    """Make appeals of deals that were marked paid and not confirmed in time; true when there may be more."""
    return _advance_due(deps, store.invoices_with_confirmation_due, Trigger.CONFIRMATION_OVERDUE)


@retry_conflicts
def _advance_due(
    deps: Deps, due_invoices: Callable[[Session, datetime, int], Sequence[Invoice]], trigger: Trigger
) -> bool:
    now = deps.clock.now()
    with deps.db.transaction() as tx:
        due = due_invoices(tx, now, BATCH)
        for invoice in due:
            deal = _deal_of(tx, invoice)
            # The row was locked after it was found: what changed in between decides.
            if _still_due(deal, trigger, now):
                lifecycle.advance(tx, deps, invoice, deal, trigger, now=now, actor=lifecycle.BY_TIME)
    return len(due) == BATCH


def _deal_of(tx: Session, invoice: Invoice) -> Deal:
    deal = store.deal(tx, invoice.deal_id) if invoice.deal_id else None
    if deal is None:
        raise AssertionError(f"invoice {invoice.id} points to a deal that does not exist")
    return deal


def _still_due(deal: Deal, trigger: Trigger, now: datetime) -> bool:
    if domain.transition(lifecycle.state_of(deal), trigger) is None:
        return False
    ends_at = deal.expires_at if trigger is Trigger.EXPIRE else deal.confirm_before
    return ends_at is not None and ends_at <= now


@retry_conflicts
def expire_invoice(deps: Deps, invoice_id: UUID) -> None:
    """Expire this one if its time is over; else nothing happens."""
    with deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked(tx, invoice_id)
        lifecycle.expire_if_overdue(tx, deps, invoice, deal, deps.clock.now())
