"""For `fiatgate verify`: what must have been credited and announced, and the repair of what was not."""

from collections.abc import Sequence
from uuid import UUID

from kit.db import retry_conflicts
from kit.outbox import announce
from services.invoices import errors, events, store
from services.invoices.models import Outbox
from services.invoices.operations import fields
from services.invoices.store import InvoiceView
from services.invoices.wiring import Deps

MAX_BATCH = 1000


def list_finished(deps: Deps, *, after_invoice_id: str, limit: int) -> Sequence[InvoiceView]:
    """Terminal invoices in order of their id, those after the given one."""
    after = fields.required_id(after_invoice_id, "after_invoice_id") if after_invoice_id else None
    with deps.db.autocommit() as connection:
        return store.finished_invoices_after(connection, after, fields.limit(limit, default=MAX_BATCH))


@retry_conflicts
def reannounce(deps: Deps, *, invoice_ids: Sequence[str]) -> list[UUID]:
    """Put the facts about these invoices into the outbox again, unchanged; returns those that are terminal."""
    if len(invoice_ids) > MAX_BATCH:
        raise errors.field_invalid("invoice_ids", f"at most {MAX_BATCH} at once")
    wanted = [fields.required_id(each, "invoice_ids") for each in invoice_ids]
    with deps.db.transaction() as tx:
        finished = store.finished_invoices(tx, wanted)
        waiting = store.announced_event_ids(
            tx, [invoice.event_id for invoice, _ in finished if invoice.event_id]
        )
        for invoice, deal in finished:
            if invoice.event_id not in waiting:
                announce(
                    tx,
                    Outbox,
                    subject=events.FINISHED,
                    message=events.invoice_finished(invoice, deal),
                    at=deps.clock.now(),
                    signal=deps.announced,
                    event_id=invoice.event_id,
                )
    deps.announced.set()
    return [invoice.id for invoice, _ in finished]
