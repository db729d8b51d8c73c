"""What goes out and comes in over NATS, and what can go wrong."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

import nats.errors

from kit.worker import Fatal, Outage

STREAM = "FIATGATE"
SUBJECTS = ("fiatgate.>",)
EVENT_ID_HEADER = "Nats-Msg-Id"  # JetStream drops a second message with the same one within two minutes
REQUEST_ID_HEADER = "Fiatgate-Request-Id"

NATS_ERRORS = (nats.errors.Error, TimeoutError, OSError)
"""What nats-py raises when the server is away, silent, or says no."""


class BusUnavailable(Outage):
    """NATS can't be reached, or doesn't do what it was asked, just now; the facts wait in PostgreSQL."""


class BusClosed(Fatal):
    """nats-py has given the connection up for good: the process has to start again."""


@dataclass(frozen=True)
class Outgoing:
    """A fact to publish; `event_id` lets JetStream and every inbox drop the second copy."""

    event_id: uuid.UUID
    subject: str
    payload: bytes
    request_id: str = ""


@dataclass(frozen=True)
class Incoming:
    """A fact delivered. Settle it with `acknowledge()` or `retry_after(seconds)`; neither waits for the
    network.
    """

    event_id: uuid.UUID
    subject: str
    payload: bytes
    request_id: str
    acknowledge: Callable[[], None]
    retry_after: Callable[[float], None]


def error_text(error: BaseException) -> str:
    """One line, never empty: nats-py's timeouts have no text of their own."""
    return str(error) or type(error).__name__
