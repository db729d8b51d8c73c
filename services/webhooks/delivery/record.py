"""The last stage of a delivery: it makes a verdict of each outcome and writes both."""

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from structlog.typing import FilteringBoundLogger

from kit.base.clock import Clock
from kit.db.database import Database, retry_conflicts
from kit.observe import metrics, tracing
from kit.observe.log import get_logger, in_one_write
from services.webhooks.domain import (
    RETRY_JITTER_SECONDS,
    Dead,
    Delivered,
    RetryAt,
    Trigger,
    Unchanged,
    Verdict,
    after_automatic,
    after_manual,
)
from services.webhooks.store import results
from services.webhooks.store.stages import Outcome, Recorded

ATTEMPTS = metrics.counter(
    "webhook_attempts",
    "Recorded attempts to deliver a webhook, by their result",
    ["trigger", "verdict"],
)
ATTEMPT_SECONDS = metrics.histogram("webhook_attempt_seconds", "Duration of attempts", ["trigger"])

# Finding a metric by its labels costs more than counting.
_counter, _seconds = functools.cache(ATTEMPTS.labels), functools.cache(ATTEMPT_SECONDS.labels)

_log = get_logger()

LEASE_LOST = "lease_lost"
_VERDICT_NAMES = {Delivered: "delivered", RetryAt: "retry", Dead: "dead", Unchanged: "unchanged"}
for _trigger in Trigger:  # each series begins at 0: Prometheus sees no growth in a series that begins with 1
    for _name in (*_VERDICT_NAMES.values(), LEASE_LOST):
        ATTEMPTS.labels(_trigger, _name)


@dataclass(frozen=True)
class Recorder:
    """Writes the results of attempts: the last stage, the same for the engine and for manual resends."""

    db: Database
    clock: Clock
    retry_delays_seconds: tuple[int, ...]

    def record(self, outcomes: Sequence[Outcome], *, again: bool = False) -> list[Recorded]:
        """Writes all in one statement. An outcome that lost its lease is dropped, logged, and not in the answer.

        Raises `DatabaseUnavailable`. Then nothing was written, or all was written and only the answer was lost: a
        repeated call, with `again`, finds the rows that were written.
        """
        judged = [(outcome, self._verdict(outcome)) for outcome in outcomes]
        recorded = {each.claim: each for each in self._write(judged)}
        if again and len(recorded) < len(outcomes):
            missing = [outcome for outcome in outcomes if outcome.claimed.claim not in recorded]
            recorded |= {each.claim: each for each in self._written_before(missing)}
        with in_one_write():
            bound = _log.bind()  # once for all lines: a new logger costs as much as a line
            for outcome, verdict in judged:
                _log_attempt(bound, outcome, verdict, fenced=outcome.claimed.claim not in recorded)
        return list(recorded.values())

    @retry_conflicts
    def _write(self, judged: Sequence[tuple[Outcome, Verdict]]) -> list[Recorded]:
        with self.db.autocommit() as connection:
            return results.record(connection, judged, now=self.clock.now())

    def _written_before(self, outcomes: Sequence[Outcome]) -> list[Recorded]:
        with self.db.autocommit() as connection:
            return results.recorded_before(connection, outcomes)

    def _verdict(self, outcome: Outcome) -> Verdict:
        if outcome.claimed.trigger is Trigger.MANUAL:
            return after_manual(succeeded=outcome.succeeded)
        return after_automatic(
            succeeded=outcome.succeeded,
            attempts_before=outcome.claimed.auto_attempts,
            ended_at=outcome.ended_at,
            # Spreading load needs no secrecy.
            jitter_seconds=random.uniform(0, RETRY_JITTER_SECONDS),  # noqa: S311
            delays_seconds=self.retry_delays_seconds,
        )


def _log_attempt(log: FilteringBoundLogger, outcome: Outcome, verdict: Verdict, *, fenced: bool) -> None:
    """Logs one wide line per attempt, and counts it."""
    claimed = outcome.claimed
    verdict_name = LEASE_LOST if fenced else _VERDICT_NAMES[type(verdict)]
    _counter(claimed.trigger, verdict_name).inc()
    _seconds(claimed.trigger).observe(outcome.duration_ms / 1000)
    log.info(
        "webhook_attempted",
        event_id=claimed.event_id,
        payload_event_id=str(claimed.terms.payload_event_id),
        merchant_id=str(claimed.terms.merchant_id),
        destination=claimed.terms.destination,
        trigger=str(claimed.trigger),
        verdict=verdict_name,
        http_status=outcome.http_status,
        duration_ms=outcome.duration_ms,
        error=outcome.error,
        request_id=claimed.request_id,
        **tracing.ids_of(outcome.traceparent),
    )
