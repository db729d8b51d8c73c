"""The timers: expiry of invoices and deals, and appeals of deals whose confirmation is overdue.

Any number of workers may run these. A timer queries everything that is due by now, so after a stop it catches up. It
ends a batch of invoices in one transaction (`batches`), which is many times quicker when there are many. A batch that
fails has no effect; each of its invoices is then ended in a transaction of its own. An invoice that can't be ended is
set aside for a while, and stops no other.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from kit.db.database import DatabaseBusy, retry_conflicts
from kit.observe import metrics
from kit.observe.log import get_logger
from kit.work.worker import Outage
from services.invoices.models import Deal, Invoice
from services.invoices.operations import batches, lifecycle
from services.invoices.store import invoices
from services.invoices.wiring import Deps

BATCH = 200
"""A customer's step waits for a batch at most once, for a tenth of a second."""

MOST_FACTS_AHEAD = 400
ROOM_SECONDS = 0.2
"""Before a batch the timer waits until the relay has published most facts of the batches before, so that the fact of a
payment is not behind thousands of them. It waits no longer: invoices end while NATS is away, too.
"""

FAILURES = metrics.counter(
    "invoice_timer_failures",
    "Times that an overdue invoice could not be ended, and was set aside",
)

Due = Callable[[Connection, datetime, int, Sequence[UUID]], Sequence[UUID]]
Step = Callable[[Session, Deps, Invoice, Deal | None, datetime], bool]
"""Takes the step that is due on a locked invoice, if it is still due; returns whether it took it."""
Steps = Callable[[Session, Deps, Sequence[UUID], datetime], int]
"""Takes the steps that are due on those invoices that no other transaction holds; returns their number."""

_log = get_logger()


def expire_invoices(deps: Deps) -> bool:
    """Expires invoices for which no method was chosen in time; returns true when there may be more."""
    return _each_due(deps, invoices.waiting_invoices_due, batches.expire_overdue, lifecycle.expire_if_overdue)


def expire_deals(deps: Deps) -> bool:
    """Expires deals that were not marked paid in time, and their invoices; returns true when there may be more."""
    return _each_due(
        deps, invoices.invoices_with_unpaid_deal_due, batches.expire_overdue, lifecycle.expire_if_overdue
    )


def open_overdue_appeals(deps: Deps) -> bool:
    """Makes appeals of deals that were marked paid and not confirmed in time; returns true when there may be more."""
    return _each_due(
        deps, invoices.invoices_with_confirmation_due, batches.appeal_overdue, lifecycle.appeal_if_overdue
    )


@retry_conflicts
def expire_invoice(deps: Deps, invoice_id: UUID) -> None:
    """Expires this invoice if its time is over; else does nothing. Waits for a lock that another transaction holds."""
    with deps.db.transaction() as tx:
        invoice, deal = lifecycle.locked(tx, invoice_id)
        lifecycle.expire_if_overdue(tx, deps, invoice, deal, deps.clock.now())


def _each_due(deps: Deps, due: Due, steps: Steps, step: Step) -> bool:
    """Handles one batch. An invoice that fails is logged, counted and set aside; an outage is raised."""
    deps.announced.wait_for_room(MOST_FACTS_AHEAD, timeout_seconds=ROOM_SECONDS)
    now = deps.clock.now()
    with deps.db.autocommit() as connection:
        invoice_ids = due(connection, now, BATCH, deps.set_aside.at(now))
    handled = _together(deps, invoice_ids, steps)
    if handled is None:
        handled = _one_by_one(deps, invoice_ids, step)
    # If other workers did all of a full batch, they probably do the next one too: wait for the next round.
    return handled > 0 and len(invoice_ids) == BATCH


def _together(deps: Deps, invoice_ids: Sequence[UUID], steps: Steps) -> int | None:
    """Handles the invoices in one transaction; returns None when that failed and has had no effect."""
    if not invoice_ids:
        return 0
    try:
        done = _batch(deps, invoice_ids, steps)
    except Outage as outage:
        if not isinstance(outage, DatabaseBusy):
            raise
        return None
    except Exception:  # noqa: BLE001  logged when the invoice that caused it fails by itself
        return None
    for invoice_id in invoice_ids:
        deps.set_aside.forget(invoice_id)
    return done


def _one_by_one(deps: Deps, invoice_ids: Sequence[UUID], step: Step) -> int:
    done, failed = 0, 0
    for invoice_id in invoice_ids:
        try:
            done += _one(deps, invoice_id, step)
            deps.set_aside.forget(invoice_id)
        except DatabaseBusy:  # the whole database may be busy, so the batch ends here
            deps.set_aside.add(invoice_id, deps.clock.now())
            raise
        except Outage:
            raise
        except Exception as error:  # noqa: BLE001  any error of one invoice; it must not stop the others
            _set_aside(deps, invoice_id, error, with_traceback=not failed)
            failed += 1
    return done + failed


def _set_aside(deps: Deps, invoice_id: UUID, error: Exception, *, with_traceback: bool) -> None:
    FAILURES.inc()
    left_alone = deps.set_aside.add(invoice_id, deps.clock.now())
    _log.error(
        "invoice_timer_failed",
        invoice_id=str(invoice_id),
        retry_seconds=left_alone.total_seconds(),
        error=repr(error)[:200],
        exc_info=error if with_traceback else None,
    )


@retry_conflicts
def _batch(deps: Deps, invoice_ids: Sequence[UUID], steps: Steps) -> int:
    with deps.db.transaction() as tx:
        return steps(tx, deps, invoice_ids, deps.clock.now())


@retry_conflicts
def _one(deps: Deps, invoice_id: UUID, step: Step) -> bool:
    with deps.db.transaction() as tx:
        found = invoices.locked_invoice(tx, invoice_id, skip_locked=True)
        if found is None:  # another transaction holds it, and expires what is overdue as well
            return False
        return step(tx, deps, *found, deps.clock.now())
