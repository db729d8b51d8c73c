"""Seals of events: only a process of webhooks makes them, and only a sealed event is sent.

SQL under the service's role can insert the row of an event. Such a row would be signed with the merchant's secret and
sent, in place of the true one. So the process that makes an event from a proven fact seals the event's terms with a key
that the database does not have, and each attempt checks the seal first.
"""

from typing import Final

from kit.base.keys import decoded, encoded
from kit.base.seals import Seals
from kit.observe import metrics
from services.webhooks.domain import EventTerms

UNSEALED = metrics.counter(
    "webhook_unsealed",
    "Attempts that were not made because the event has no right seal: none, wrong",
    ["seal"],
)
REPLACED = metrics.counter(
    "webhook_events_replaced", "Events without a right seal that were replaced by the true ones"
)

NONE: Final = "none"
WRONG: Final = "wrong"
_SEALED: Final = "webhook event"

for _seal in (NONE, WRONG):  # each series begins at 0: an alert sees the first increase
    UNSEALED.labels(_seal)


class EventSeals:
    """Makes and checks the seals of events (kit.base.seals), which are stored as text."""

    def __init__(self, seals: Seals) -> None:
        self._seals = seals

    def seal(self, terms: EventTerms) -> str:
        return encoded(self._seals.seal(_SEALED, _sealed_bytes(terms)))

    def is_right(self, terms: EventTerms, seal: str | None) -> bool:
        try:
            given = decoded(seal or "")
        except (ValueError, UnicodeEncodeError):
            return False
        return self._seals.is_right(_SEALED, _sealed_bytes(terms), given)

    def flaw(self, terms: EventTerms, seal: str | None) -> str | None:
        """Returns NONE or WRONG when the event must not be sent; None when it may."""
        if not seal:
            return NONE
        return None if self.is_right(terms, seal) else WRONG


def _sealed_bytes(terms: EventTerms) -> bytes:
    # Ids have a fixed length, and the length of each text but the last is before it: no two events have the same bytes.
    texts = (terms.event_type.encode(), terms.callback_url.encode())
    return b"".join(
        [
            terms.payload_event_id.bytes,
            terms.invoice_id.bytes,
            terms.merchant_id.bytes,
            terms.key_id.bytes,
            *(len(each).to_bytes(4, "big") + each for each in texts),
            terms.payload,
        ]
    )
