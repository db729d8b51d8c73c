"""The names that clients of the gateway may guess (`kit.web.walls.strangers`).

A colour of the payment page that is new to this worker takes a token too (gateway/pay/files.py): all colours exist, and
merchants have few of them.
"""

from collections.abc import Callable
from typing import Final

from kit.base.clock import monotonic_seconds
from kit.web.walls.strangers import Kind, Strangers

KEYS: Final = "keys"
CONNECTORS: Final = "connectors"
PAYMENTS: Final = "payments"
LINKS: Final = "links"
KINDS: Final = {
    KEYS: Kind(at_a_time=2, missing="API_KEY_INVALID"),
    CONNECTORS: Kind(at_a_time=2, missing="API_KEY_INVALID"),
    # They share two calls at a time (gateway/pay/existing.py).
    PAYMENTS: Kind(at_a_time=64, missing="INVOICE_NOT_FOUND"),
    LINKS: Kind(at_a_time=2, missing="LINK_NOT_FOUND"),
}


def strangers_of(limit: int, *, now_seconds: Callable[[], float] = monotonic_seconds) -> Strangers:
    """Returns the bounds of one worker."""
    message = "Too many unknown keys, payments or colours were asked for from your network"
    return Strangers(limit, KINDS, message=message, now_seconds=now_seconds)
