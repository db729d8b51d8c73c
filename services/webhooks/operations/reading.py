"""Events with their attempts, for merchants and operators."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from kit.audit.listing import Act, newest_acts_on
from kit.rpc import values
from kit.rpc.actors import require_merchant
from services.webhooks import errors
from services.webhooks.domain import EventTerms, headers_of, signed_headers
from services.webhooks.store import events
from services.webhooks.store.views import EventHistory, EventView
from services.webhooks.wiring import Deps

ACTS_MOST: Final = 200
FOLLOWED_MOST: Final = 100


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


@dataclass(frozen=True, slots=True)
class Followed:
    """An event with the headers that an attempt would have now."""

    event: EventView
    headers: Mapping[str, str]


def follow_events(deps: Deps, *, merchant_id: str, after_event_id: int, limit: int) -> Sequence[Followed]:
    """Returns the merchant's events after this one, in order, up to the first without a right seal.

    Raises DB_UNAVAILABLE while identity, which has the secrets, is away.
    """
    merchant = values.uuid("merchant_id", merchant_id)
    after = values.whole_number("after_event_id", after_event_id, least=0)
    limit = values.rows(limit, most=FOLLOWED_MOST)
    with deps.db.autocommit() as connection:
        found = events.events_after(connection, merchant, after=after, limit=limit)
    proved = list(takewhile(lambda each: deps.seals.flaw(each.terms, each.seal) is None, found))
    secrets = deps.identity.signing_secrets((merchant, each.terms.key_id) for each in proved)
    now = deps.clock.now()

    def headers(terms: EventTerms) -> Mapping[str, str]:
        secret = secrets.get((merchant, terms.key_id))
        if secret is None:
            return headers_of(terms.payload_event_id, now)
        return signed_headers(terms.payload_event_id, now, secret, terms.payload)

    return [Followed(each.event, headers(each.terms)) for each in proved]


def get_event(deps: Deps, *, event_id: int) -> EventHistory:
    """Returns the event with its attempts. Raises WEBHOOK_EVENT_NOT_FOUND."""
    with deps.db.transaction() as tx:
        history = events.event_history(tx, event_id)
    if history is None:
        raise errors.event_not_found()
    require_merchant(history.event.merchant_id, errors.event_not_found)
    return history
