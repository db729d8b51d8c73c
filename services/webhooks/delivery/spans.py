"""The span of an attempt, in the trace of the request that led to the event (kit.observe.tracing).

Receivers get no `traceparent`: docs/api.md#webhook-headers lists all headers that are sent.
"""

from kit.observe import tracing
from kit.observe.tracing import Span, Value
from services.webhooks.store.stages import Claimed, Outcome


def of_attempt(claimed: Claimed) -> Span:
    if not tracing.is_on():
        return tracing.NOTHING
    attributes: dict[str, Value] = {
        "http.request.method": "POST",
        "http.request.resend_count": claimed.auto_attempts,
        "fiatgate.event_id": str(claimed.terms.payload_event_id),
        "fiatgate.merchant_id": str(claimed.terms.merchant_id),
        "fiatgate.trigger": str(claimed.trigger),
    }
    host, _, port = claimed.terms.destination.rpartition(":")
    if port.isdecimal() and "/" not in host:  # a URL that can't be parsed is its own destination
        attributes |= {"server.address": host, "server.port": int(port)}
    if claimed.request_id:
        attributes[tracing.REQUEST_ID] = claimed.request_id
    return tracing.continued("webhook attempt", "client", claimed.traceparent, attributes)


def ended(span: Span, outcome: Outcome) -> None:
    """Sets the answer's status, but no text of the answer or the error, because those contain addresses."""
    if outcome.http_status is not None:
        span.set_attribute("http.response.status_code", outcome.http_status)
    if not outcome.succeeded:
        span.fail("no_answer" if outcome.http_status is None else str(outcome.http_status))
