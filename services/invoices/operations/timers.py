"""What time does: expiry of invoices and deals, and deals whose confirmation is overdue.

Any number of workers may run these. They ask for what is due by now, so after a stop over the expiry the first rounds
catch up. Each invoice gets a transaction of its own: one of them never holds two requisites, which others may want in
the other order, nor makes a customer wait for a whole batch, and an invoice that can't be ended stops no other.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from kit.db import retry_conflicts
from kit.worker import Outage
from services.invoices import store
from services.invoices.models import Deal, Invoice
from services.invoices.operations import lifecycle
from services.invoices.wiring import Deps

BATCH = 100

Due = Callable[[Connection, datetime, int], Sequence[UUID]]
Step = Callable[[Session, Deps, Invoice, Deal | None, datetime], bool]
"""Does to a locked invoice what time asks for, if it still does; whether it did."""


def expire_invoices(deps: Deps) -> bool:
    """Expire invoices for which no method was chosen in time; true when there may be more."""
    return _each_due(deps, store.waiting_invoices_due, lifecycle.expire_if_overdue)


def expire_deals(deps: Deps) -> bool:
    """Expire deals that were not marked paid in time, their invoices with them; true when there may be more."""
    return _each_due(deps, store.invoices_with_unpaid_deal_due, lifecycle.expire_if_overdue)


def open_overdue_appeals(deps: Deps) -> bool:
    """Make appeals of deals that were marked paid and not confirmed in time; true when there may be more."""
    return _each_due(deps, store.invoices_with_confirmation_due, lifecycle.appeal_if_overdue)


@retry_conflicts
def expire_invoice(deps: Deps, invoice_id: UUID) -> None:
    """Expire this one if its time is over; else nothing happens. Waits for whoever is at it."""
    with deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked(tx, invoice_id)
        lifecycle.expire_if_overdue(tx, deps, invoice, deal, deps.clock.now())


def _each_due(deps: Deps, due: Due, step: Step) -> bool:
    """Raises what went wrong with an invoice once the others had their turn."""
    with deps.db.autocommit() as connection:
        invoice_ids = due(connection, deps.clock.now(), BATCH)
    done, broken = 0, None
    for invoice_id in invoice_ids:
        try:
            done += _one(deps, invoice_id, step)
        except Outage:
            raise
        except Exception as error:  # noqa: BLE001  the worker tells about it, after the others
            error.add_note(f"while time was up for invoice {invoice_id}")
            broken = error
    if broken is not None:
        raise broken
    # Of a full batch in which others did everything the next one may be theirs as well: no hurry then.
    return done > 0 and len(invoice_ids) == BATCH


@retry_conflicts
def _one(deps: Deps, invoice_id: UUID, step: Step) -> bool:
    with deps.db.transaction() as tx:
        invoice = store.locked_invoice(tx, invoice_id, skip_locked=True)
        if invoice is None:  # somebody is at it, and looks at the clock as well
            return False
        return step(tx, deps, invoice, lifecycle.newest_deal(tx, invoice), deps.clock.now())
