"""How a delivery at a consumer ends: acknowledged, postponed, requested again or parked; and its metrics and log."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from kit.base.clock import Clock
from kit.events.bus.messages import Incoming
from kit.events.parked import Parking, unproven_id
from kit.events.proof import REASONS, Unproven
from kit.events.putoff import PutOff
from kit.observe import metrics, tracing
from kit.observe.log import get_logger

_log = get_logger()

EVENTS = metrics.counter(
    "events",
    "Events from the stream: handled, failed (and coming again), put off for the database, parked, dropped",
    ["consumer", "outcome"],
)
UNPROVEN = metrics.counter(
    "events_unproven",
    "Events without a signature of their producer: unsigned, unknown_key, wrong_signature",
    ["consumer", "reason"],
)
LAST_RETRY_SECONDS = 60.0
FORGET_PUT_OFF = timedelta(seconds=3 * LAST_RETRY_SECONDS)


class Outcomes:
    """Ends the deliveries of one consumer.

    `put_off` has the events that wait for the database. The parameters are those of `kit.events.consumer.Consumer`.
    """

    def __init__(
        self,
        name: str,
        *,
        parking: Parking,
        clock: Clock,
        ids_in: Callable[[bytes], Mapping[str, str]],
        park_after_failures: int,
        first_retry_seconds: float,
    ) -> None:
        self.put_off = PutOff(forget_after=FORGET_PUT_OFF)
        self._name = name
        self._parking = parking
        self._clock = clock
        self._ids_in = ids_in
        self._park_after_failures = park_after_failures
        self._first_retry_seconds = first_retry_seconds
        for reason in REASONS:
            UNPROVEN.labels(name, reason)  # shown as 0 from the start: an alert sees the first one grow

    def acknowledge(self, events: Sequence[Incoming]) -> None:
        """Acknowledges events whose effect is committed."""
        EVENTS.labels(self._name, "handled").inc(len(events))
        for event in events:
            event.acknowledge()
            self.put_off.remove(event.event_id)
            _log.info("event_handled", **self.fields_of(event))

    def count_failure(self, event: Incoming, failure: Exception, row_id: uuid.UUID) -> None:
        """Records the failure in its own transaction, then requests the event again or parks it."""
        self.put_off.remove(event.event_id)
        if row_id == event.event_id:
            attempts = self._parking.note_failure(event, failure, park_after=self._park_after_failures)
            park = attempts >= self._park_after_failures
        else:
            attempts, park = self._parking.note_again(row_id, failure), True
        EVENTS.labels(self._name, "parked" if park else "failed").inc()
        _log.error(
            "event_parked" if park else "event_failed",
            **self.fields_of(event),
            attempts=attempts,
            exc_info=failure,
        )
        if park:
            event.acknowledge()
        else:
            event.retry_after(self._pause_seconds(attempts))

    def park(self, unproven: list[tuple[Incoming, Unproven]]) -> None:
        """Parks and removes each event. Raises `DatabaseUnavailable` with the rest left in the list."""
        while unproven:
            event, failure = unproven[0]
            kept = self._parking.park_unproven(event, failure)
            EVENTS.labels(self._name, "parked" if kept else "dropped").inc()
            UNPROVEN.labels(self._name, failure.reason).inc()
            why = {"reason": failure.reason, "error": str(failure), "parked_id": str(unproven_id(event))}
            _log.error("event_unproven", **self.fields_of(event), **why, kept=kept)
            event.acknowledge()
            del unproven[0]

    def postpone(self, event: Incoming, reason: Exception) -> None:
        """Requests the event again, with growing pauses: an event that is slow by itself must not delay the others."""
        self.put_off.add(event.event_id, self._clock.now())
        pause_seconds = self._pause_seconds(event.deliveries)
        EVENTS.labels(self._name, "put_off").inc()
        _log.warning(
            "event_postponed",
            **self.fields_of(event),
            deliveries=event.deliveries,
            pause_seconds=pause_seconds,
            error=f"{type(reason).__name__}: {reason}",
        )
        event.retry_after(pause_seconds)

    def fields_of(self, event: Incoming) -> dict[str, str]:
        """Returns the fields that describe an event in the log."""
        return {
            "consumer": self._name,
            "subject": event.subject,
            "event_id": str(event.event_id),
            **self._ids_in(event.payload),
            "request_id": event.request_id,
            **tracing.ids_of(event.traceparent),
        }

    def _pause_seconds(self, times: int) -> float:
        doubled = 1 << min(times - 1, 10)
        return min(self._first_retry_seconds * doubled, LAST_RETRY_SECONDS)
