"""Events with their attempts, for merchants and operators."""

from collections.abc import Sequence
from typing import Final

from kit.audit.listing import Act, newest_acts_on
from kit.rpc import values
from kit.rpc.actors import require_merchant
from services.webhooks import errors
from services.webhooks.store import events
from services.webhooks.store.views import EventHistory
from services.webhooks.wiring import Deps

ACTS_MOST: Final = 200


def list_invoice_events(deps: Deps, *, merchant_id: str, invoice_id: str) -> list[EventHistory]:
    """Returns the events of the merchant's invoice, newest first. An empty merchant id means any: for operators."""
    merchant = values.uuid("merchant_id", merchant_id) if merchant_id else None
    invoice = values.uuid("invoice_id", invoice_id)
    with deps.db.transaction() as tx:
        return events.histories_of_invoice(tx, merchant_id=merchant, invoice_id=invoice)


def acts_on(deps: Deps, histories: Sequence[EventHistory]) -> Sequence[Act]:
    """Returns the newest acts on these events, newest first."""
    objects = [f"event:{each.event.id}" for each in histories]
    with deps.db.autocommit() as connection:
        return newest_acts_on(connection, objects, limit=ACTS_MOST)


def get_event(deps: Deps, *, event_id: int) -> EventHistory:
    """Returns the event with its attempts. Raises WEBHOOK_EVENT_NOT_FOUND."""
    with deps.db.transaction() as tx:
        history = events.event_history(tx, event_id)
    if history is None:
        raise errors.event_not_found()
    require_merchant(history.event.merchant_id, errors.event_not_found)
    return history
