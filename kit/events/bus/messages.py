"""The messages sent and received over NATS, and the errors of NATS."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass

import nats.errors

from kit.observe import metrics, tracing
from kit.observe.tracing import Kind, Span
from kit.work.worker import Fatal, Outage

SUBJECTS = ("fiatgate.>",)
EVENT_ID_HEADER = "Nats-Msg-Id"  # JetStream drops a second message with the same value within two minutes
REQUEST_ID_HEADER = "Fiatgate-Request-Id"
SIGNATURE_HEADER = "Fiatgate-Signature"  # see kit.events.signing
SAME_EVENT_HEADER = "Fiatgate-Event-Id"
"""Holds the event's id where `EVENT_ID_HEADER` has another value, which makes JetStream accept a second copy."""

NATS_ERRORS = (nats.errors.Error, TimeoutError, OSError)
"""The errors that nats-py raises when the server is away, silent or refuses."""


REFUSED = metrics.counter(
    "nats_refused",
    "Refusals by NATS: of a password, or of a right that this process's user does not have",
    ["what"],
)
for _what in ("password", "right"):
    REFUSED.labels(_what)  # shown as 0 from the start: an alert sees the first refusal
DROPPED = metrics.counter(
    "nats_messages_dropped", "Messages on the subject of facts that no process of Fiatgate published"
)
HINTS_DROPPED = metrics.counter(
    "nats_hints_dropped",
    "Hints that were dropped unread because they are larger than those of Fiatgate's processes",
)

HINT_MOST_BYTES = 8 << 10
"""The largest hint that is read. A user of NATS that was taken over can send many megabytes a second, and parsing them
would take the time of the process.
"""


def is_too_large(hint: bytes) -> bool:
    """Returns whether to drop a hint unread because of its size, and counts it."""
    if len(hint) <= HINT_MOST_BYTES:
        return False
    HINTS_DROPPED.inc()
    return True


class BusUnavailable(Outage):
    """NATS cannot be reached or does not serve the request now; the facts wait in PostgreSQL."""


class BusRefused(BusUnavailable):
    """NATS refuses this process's user a right; the text is NATS' own, with the subject."""


class BusClosed(Fatal):
    """nats-py has closed the connection for good: the process must be restarted."""


@dataclass(frozen=True)
class Outgoing:
    """A fact to publish; `event_id` lets JetStream and every inbox drop the second copy."""

    event_id: uuid.UUID
    subject: str
    payload: bytes
    request_id: str = ""
    traceparent: str = ""
    signature: str = ""

    def headers(self, traceparent: str) -> dict[str, str]:
        """Returns the message's headers; `traceparent` is that of the publication, or empty without a span."""
        named = {
            EVENT_ID_HEADER: str(self.event_id),
            REQUEST_ID_HEADER: self.request_id,
            tracing.HEADER: traceparent or self.traceparent,
            SIGNATURE_HEADER: self.signature,
        }
        return {name: value for name, value in named.items() if value}


@dataclass(frozen=True)
class Incoming:
    """A delivered fact. Settle it with `acknowledge()` or `retry_after(seconds)`; neither waits for the network."""

    event_id: uuid.UUID
    subject: str
    payload: bytes
    request_id: str
    acknowledge: Callable[[], None]
    retry_after: Callable[[float], None]
    traceparent: str = ""
    signature: str = ""
    deliveries: int = 1  # of this message so far, to any process


def publishing(message: Outgoing) -> Span:
    """Returns the span of a publication, in the trace of the change that made the fact true."""
    return _spans_of("send", "producer", message)


def processing(event: Incoming, consumer: str) -> Span:
    """Returns the span of an event's effect."""
    span = _spans_of("process", "consumer", event)
    span.set_attribute("messaging.consumer.group.name", consumer)
    return span


def _spans_of(operation: str, kind: Kind, message: Outgoing | Incoming) -> Span:
    if not tracing.is_on():
        return tracing.NOTHING
    attributes = {
        "messaging.system": "nats",
        "messaging.operation.type": operation,
        "messaging.destination.name": message.subject,
        "messaging.message.id": str(message.event_id),
    }
    if message.request_id:
        attributes[tracing.REQUEST_ID] = message.request_id
    return tracing.continued(f"{operation} {message.subject}", kind, message.traceparent, attributes)


def is_wrong_password(error: BaseException) -> bool:
    return "authorization violation" in str(error).lower()


def is_missing_right(error: BaseException) -> bool:
    return "permissions violation" in str(error).lower()


def count_refusal(error: BaseException) -> None:
    """Counts an error of the connection when NATS refuses a password or a right; an outage is not counted."""
    if is_wrong_password(error):
        REFUSED.labels("password").inc()
    elif is_missing_right(error):
        REFUSED.labels("right").inc()


def error_text(error: BaseException) -> str:
    """Returns one line, never empty: nats-py's timeouts have no text of their own."""
    return str(error) or type(error).__name__
