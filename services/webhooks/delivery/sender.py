"""One attempt: sign, send, and return the result as one value. Never raises because of a receiver."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from kit.base import request_id
from kit.base.clock import Clock, monotonic_seconds
from kit.egress import client
from kit.egress.client import Egress, EgressError, Forbidden
from kit.observe.log import get_logger
from services.webhooks.delivery import spans
from services.webhooks.delivery.seals import UNSEALED, EventSeals
from services.webhooks.domain import (
    HELD_BACK_ERROR,
    INTERNAL_ERROR,
    NO_KEY_ERROR,
    NOT_SENT,
    destination_of,
    is_success,
    signed_headers,
)
from services.webhooks.store.stages import Answer, Claimed, Outcome, Shipment

_log = get_logger()

BODY_MAX_BYTES = 16 * 1024
HEADERS_MAX_BYTES = 8 * 1024


@dataclass(frozen=True)
class Sender:
    """Sends shipments, each within `timeout_seconds` of wall clock from the name's resolution to the answer's head."""

    egress: Egress
    seals: EventSeals
    clock: Clock
    timeout_seconds: float

    async def send(self, shipment: Shipment) -> Outcome:
        """Makes the attempt. A 2xx status in time is a success, however slow its body; anything else is a failure with
        its reason.
        """
        claimed = shipment.claimed
        with request_id.bind(claimed.request_id), spans.of_attempt(claimed) as span:
            started_at, started_seconds = self.clock.now(), monotonic_seconds()
            answer, error = await self._signed(shipment, started_at)
            elapsed_ms = round((monotonic_seconds() - started_seconds) * 1000)
            outcome = Outcome(
                claimed=claimed,
                started_at=started_at,
                ended_at=self.clock.now(),
                duration_ms=elapsed_ms if answer is None else answer.duration_ms,
                held_ms=elapsed_ms,
                answer=None if answer is None else kept(answer),
                error=error,
                traceparent=span.traceparent,
            )
            spans.ended(span, outcome)
        return outcome

    async def _signed(self, shipment: Shipment, at: datetime) -> tuple[client.Answer | None, str | None]:
        claimed = shipment.claimed
        if not self._may_be_sent(claimed):
            return None, HELD_BACK_ERROR
        if shipment.secret is None:
            return None, NO_KEY_ERROR
        return await self.post(
            claimed.terms.callback_url,
            claimed.terms.payload,
            claimed.terms.payload_event_id,
            secret=shipment.secret,
            at=at,
        )

    def _may_be_sent(self, claimed: Claimed) -> bool:
        flaw = self.seals.flaw(claimed.terms, claimed.seal)
        if flaw is not None:
            UNSEALED.labels(flaw).inc()
            _log.error(
                "webhook_unsealed",
                event_id=claimed.event_id,
                invoice_id=str(claimed.terms.invoice_id),
                seal=flaw,
            )
        return flaw is None

    async def post(
        self, url: str, body: bytes, event_id: UUID, *, secret: str, at: datetime
    ) -> tuple[client.Answer | None, str | None]:
        """Sends a signed body. Returns the answer and the error, one of the two or both."""
        try:
            answer = await self.egress.call(
                "POST",
                url,
                body=body,
                headers=signed_headers(event_id, at, secret, body),
                deadline_seconds=self.timeout_seconds,
                body_max_bytes=BODY_MAX_BYTES,
            )
        except Forbidden as failure:
            return None, f"{NOT_SENT}{failure}"
        except EgressError as failure:
            return None, str(failure)
        except Exception as failure:  # noqa: BLE001  any error is the result of the attempt
            # Recorded like any failure: an event that breaks this code must reach its end too, not be tried for ever.
            # The URL is not logged: merchants keep secrets in theirs.
            _log.error("webhook_attempt_crashed", destination=destination_of(url), exc_info=failure)
            return None, INTERNAL_ERROR
        return answer, None if is_success(answer.status) else f"HTTP status {answer.status}"


def kept(answer: client.Answer) -> Answer:
    """Returns the part of the answer that the history keeps: its body, and as many headers as fit, in bytes of
    UTF-8.
    """
    body = answer.text.encode()[:BODY_MAX_BYTES].decode(errors="ignore")
    headers: dict[str, str] = {}
    left = HEADERS_MAX_BYTES
    for name, value in answer.headers.items():
        left -= len(name.encode()) + len(value.encode())
        if left < 0:
            break
        headers[name] = value
    return Answer(answer.status, headers, body)
