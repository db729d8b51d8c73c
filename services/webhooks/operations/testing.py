"""A test event: the body of an invoice that does not exist, signed as a real one, sent once, now. Nothing is kept of it
but the act of its author.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from kit.audit import acts
from kit.audit.listing import newest_acts_on
from kit.base.clock import monotonic_seconds
from kit.base.ids import new_id
from kit.egress import client
from kit.rpc import values
from kit.rpc.actors import require_merchant
from services.webhooks import errors
from services.webhooks.delivery.sender import Sender, kept
from services.webhooks.domain import (
    destination_of,
    headers_of,
    invoice_of_test,
    is_refusal,
    is_success,
    payload_of,
    why_not_sent,
)
from services.webhooks.store import events
from services.webhooks.store.stages import Answer
from services.webhooks.wiring import Deps

COOLDOWN: Final = timedelta(seconds=10)
"""The shortest time between two tests of a merchant."""
_NO_KEY: Final = UUID(int=0)
"""No key has this id: the secret is that of the merchant's newest active key."""


@dataclass(frozen=True, kw_only=True)
class Tested:
    """A test event and what came of it. Its headers are without the signature; it has none when nothing was sent.

    cooldown_seconds  until the merchant's next test can be sent
    """

    url: str
    headers: Mapping[str, str]
    body: bytes
    duration_ms: int
    answer: Answer | None
    error: str | None
    cooldown_seconds: int

    @property
    def ok(self) -> bool:
        return self.answer is not None and is_success(self.answer.http_status)


def send_test(deps: Deps, *, merchant_id: str, event_id: int, wrong_signature: bool = False) -> Tested:
    """Sends a test event to the address of an event of the merchant; for event 0 to the merchant's default address. The
    answer to a wrong signature is recorded as an act, which `get_signature_check` reads.

    So a member reaches no address that is not the merchant's. Raises WEBHOOK_EVENT_NOT_FOUND, WEBHOOK_NOT_FOUND (no
    default address), API_KEY_NOT_FOUND, WEBHOOK_RESEND_COOLDOWN, RATE_LIMITED, and DB_UNAVAILABLE while identity is
    away.
    """
    merchant = values.uuid("merchant_id", merchant_id)
    url = _url_of_event(deps, merchant, event_id) if event_id else deps.identity.callback_url(merchant)
    if not url:
        raise errors.no_address()
    secret = deps.identity.signing_secrets([(merchant, _NO_KEY)]).get((merchant, _NO_KEY))
    if secret is None:
        raise errors.no_key()
    with deps.resend_turns.turn(str(merchant)):
        began_at = _record(deps, merchant, url)
        tested = _sent(deps, merchant, url, str(new_id()) if wrong_signature else secret, began_at)
    if wrong_signature and tested.answer is not None:
        with deps.db.transaction() as tx:
            answered = {"http_status": tested.answer.http_status}
            acts.record(tx, "webhooks.check", _checked(merchant), merchant_id=merchant, after=answered)
    return tested


def get_signature_check(deps: Deps, *, merchant_id: str) -> bool:
    """Returns whether the merchant's server answered 4xx to the newest test event with a wrong signature."""
    merchant = values.uuid("merchant_id", merchant_id)
    with deps.db.transaction() as tx:
        newest = newest_acts_on(tx.connection(), [_checked(merchant)], limit=1)
    return any(
        name == "http_status" and is_refusal(int(after)) for each in newest for name, _, after in each.changes
    )


def _checked(merchant: UUID) -> str:
    return f"signature-check:{merchant}"


def _url_of_event(deps: Deps, merchant: UUID, event_id: int) -> str:
    with deps.db.transaction() as tx:
        history = events.event_history(tx, event_id)
    if history is None or history.event.merchant_id != merchant:
        raise errors.event_not_found()
    require_merchant(history.event.merchant_id, errors.event_not_found)
    return history.event.callback_url


def _record(deps: Deps, merchant: UUID, url: str) -> datetime:
    """Writes the act and returns its time. The last one is the merchant's last test: a further one waits for the
    cooldown.
    """
    tested = f"merchant:{merchant}"
    with deps.db.transaction() as tx:
        events.lock_tests(tx, merchant)
        now = deps.clock.now()
        last = newest_acts_on(tx.connection(), [tested], limit=1)
        if last and (left_seconds := _cooldown_seconds(last[0].at, now)):
            raise errors.test_cooldown(left_seconds)
        # The address itself is not written: merchants keep secrets in theirs.
        acts.record(tx, "webhooks.test", tested, merchant_id=merchant, note=destination_of(url))
    return now


def _cooldown_seconds(began_at: datetime, now: datetime) -> int:
    """Returns the whole seconds that are left of the cooldown of a test; 0: it is over."""
    return max(0, math.ceil((began_at + COOLDOWN - now).total_seconds()))


def _sent(deps: Deps, merchant: UUID, url: str, secret: str, began_at: datetime) -> Tested:
    at, event_id = deps.clock.now(), new_id()
    invoice = invoice_of_test(event_id=event_id, invoice_id=new_id(), merchant_id=merchant, at=at)
    body = payload_of(invoice, is_test=deps.settings.is_test, is_test_event=True)

    async def send(sender: Sender) -> tuple[client.Answer | None, str | None]:
        return await sender.post(url, body, event_id, secret=secret, at=at)

    began_seconds = monotonic_seconds()
    answer, error = deps.courier.submit(send).result()
    elapsed_ms = round((monotonic_seconds() - began_seconds) * 1000)
    return Tested(
        url=url,
        headers={} if why_not_sent(error) else headers_of(event_id, at),
        body=body,
        duration_ms=elapsed_ms if answer is None else answer.duration_ms,
        answer=None if answer is None else kept(answer),
        error=error,
        cooldown_seconds=_cooldown_seconds(began_at, deps.clock.now()),
    )
