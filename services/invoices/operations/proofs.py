"""For `fiatgate verify`: what must have been credited and announced, and the repair of what was not."""

from collections.abc import Sequence
from uuid import UUID

from kit.db import retry_conflicts
from kit.outbox import announce
from services.invoices import errors, events, store
from services.invoices.models import Deal, Invoice, Outbox
from services.invoices.operations import fields
from services.invoices.wiring import Deps

MAX_BATCH = 1000


def list_finished(deps: Deps, *, after_invoice_id: str, limit: int) -> Sequence[tuple[Invoice, Deal | None]]:
    """Terminal invoices with their deals, in order of the invoices' ids, those after the given one."""
    after = fields.required_id(after_invoice_id, "after_invoice_id") if after_invoice_id else None
    with deps.db.transaction() as tx:
        return store.finished_invoices_after(tx, after, fields.limit(limit, default=MAX_BATCH))


@retry_conflicts
def reannounce(deps: Deps, *, invoice_ids: Sequence[str]) -> list[UUID]:
    """Announce these invoices again, in the same words; returns those that are terminal.

    Each time under a new id of the outbox: under the old one JetStream (for two minutes) and every inbox (for days)
    would drop it unseen, and nothing would be mended. Consumers have one effect per invoice whatever they hear twice.
    """
    if len(invoice_ids) > MAX_BATCH:
        raise errors.field_invalid("invoice_ids", f"at most {MAX_BATCH} at once")
    wanted = [fields.required_id(each, "invoice_ids") for each in invoice_ids]
    with deps.db.transaction() as tx:
        finished = store.finished_invoices(tx, wanted)
        for invoice, deal in finished:
            announce(
                tx,
                Outbox,
                subject=events.FINISHED,
                message=events.invoice_finished(invoice, deal),
                at=deps.clock.now(),
                announced=deps.announced,
                signer=deps.signer,
            )
    return [invoice.id for invoice, _ in finished]
