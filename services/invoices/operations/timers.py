"""What time does: expiry of invoices and deals, and deals whose confirmation is overdue.

Any number of workers may run these. They ask for what is due by now, so after a stop over the expiry the first rounds
catch up. Each invoice gets a transaction of its own: one of them never holds two requisites, which others may want in
the other order, nor makes a customer wait for a whole batch. An invoice that can't be ended is set aside for a while:
any number of them stops no other.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from kit import log, metrics
from kit.db import DatabaseBusy, retry_conflicts
from kit.worker import Outage
from services.invoices import store
from services.invoices.models import Deal, Invoice
from services.invoices.operations import lifecycle
from services.invoices.wiring import Deps

BATCH = 100

FAILURES = metrics.counter(
    "invoice_timer_failures",
    "Times that an invoice whose time was over could not be ended, and was set aside",
)

Due = Callable[[Connection, datetime, int, Sequence[UUID]], Sequence[UUID]]
Step = Callable[[Session, Deps, Invoice, Deal | None, datetime], bool]
"""Does to a locked invoice what time asks for, if it still does; whether it did."""

_log = log.get_logger()


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
    """One batch. What goes wrong with an invoice is logged and counted, and the invoice is set aside; an outage is
    raised.
    """
    now = deps.clock.now()
    with deps.db.autocommit() as connection:
        invoice_ids = due(connection, now, BATCH, deps.set_aside.at(now))
    done, failed = 0, 0
    for invoice_id in invoice_ids:
        try:
            done += _one(deps, invoice_id, step)
            deps.set_aside.forget(invoice_id)
        except DatabaseBusy:  # the database itself may be busy, so no next one is tried in this batch
            deps.set_aside.add(invoice_id, deps.clock.now())
            raise
        except Outage:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, it must not stop the others
            _set_aside(deps, invoice_id, error, with_traceback=not failed)
            failed += 1
    # Of a full batch in which others did everything the next one may be theirs as well: no hurry then.
    return done + failed > 0 and len(invoice_ids) == BATCH


def _set_aside(deps: Deps, invoice_id: UUID, error: Exception, *, with_traceback: bool) -> None:
    FAILURES.inc()
    left_alone = deps.set_aside.add(invoice_id, deps.clock.now())
    _log.error(
        "invoice set aside",
        invoice_id=str(invoice_id),
        retry_seconds=left_alone.total_seconds(),
        error=repr(error)[:200],
        exc_info=error if with_traceback else None,
    )


@retry_conflicts
def _one(deps: Deps, invoice_id: UUID, step: Step) -> bool:
    with deps.db.transaction() as tx:
        invoice = store.locked_invoice(tx, invoice_id, skip_locked=True)
        if invoice is None:  # somebody is at it, and looks at the clock as well
            return False
        return step(tx, deps, invoice, lifecycle.newest_deal(tx, invoice), deps.clock.now())
