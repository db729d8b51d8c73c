"""Events compared with the facts of their invoices."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from kit.rpc import values
from services.webhooks.domain import (
    FinishedInvoice,
)
from services.webhooks.store import books, events
from services.webhooks.store.events import InvoiceEvents
from services.webhooks.wiring import Deps


def check_invoices(
    deps: Deps, *, invoice_ids: Sequence[str], facts: Sequence[FinishedInvoice] = ()
) -> list[InvoiceEvents]:
    """Returns the events of these invoices (at most 1000), counted. Invoices without events are left out.
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
    after = values.uuid("after_invoice_id", after_invoice_id) if after_invoice_id else None
    with deps.db.autocommit() as connection:
        return books.invoices_with_event(connection, after=after, limit=limit)
