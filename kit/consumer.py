"""Lets each event of one subject take effect once, in one transaction, however often it is delivered.

Deliver, begin, note it in the inbox, do the effect, commit, acknowledge: a crash anywhere repeats the
delivery and the inbox makes the repetition harmless. An event that keeps failing is parked in a table,
counted and shown, never dropped (DESIGN section 3); the database being away is nobody's failure and counts
for nothing.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

import structlog
from sqlalchemy import case, delete, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit import metrics, request_id, tracing
from kit.bus import Bus, Incoming, Pull, processing
from kit.clock import Clock, monotonic_seconds
from kit.db import Database, DatabaseBusy, DatabaseUnavailable, retry_conflicts
from kit.inbox import InboxColumns, ParkedColumns, take_in
from kit.worker import Backoff, Fatal, Pulse, Stop, WorkerHealth, log_failure

log = structlog.get_logger(__name__)

EVENTS = metrics.counter(
    "events",
    "Events taken from the stream: handled, failed (and coming again), parked",
    ["consumer", "outcome"],
)

Handler = Callable[[Session, Incoming], None]


@dataclass(frozen=True)
class Retried:
    """How many parked events were handled again, and how many of them took effect; `more` lie behind `last_id`."""

    retried: int
    mended: int
    last_id: uuid.UUID | None
    more: bool


BATCH = 32
PARK_AFTER_FAILURES = 20
LAST_RETRY_SECONDS = 60.0
OUTAGE_RETRY_SECONDS = 1.0
STALE_AFTER_SECONDS = 4.0
"""An idle consumer fetches once a second. One that has not for so long has stopped; readiness tells within 5 s."""

RETRY_ROWS = 100
RETRY_SECONDS = 2.0
SWEEP_ROWS = 5000
SWEEP_EVERY = timedelta(hours=1)
KEEP_INBOX = timedelta(days=90)
"""Longer than the stream (30 days) and every outbox (7 days) can bring an event back."""


class Consumer:
    """A worker around `handler(tx, event)`: it does the effect in `tx` and raises when it can't.

    The handler works on `tx` and nothing else: it may run again for the same event, and `tx` may hold the
    effects of the events before it.

    `name` is the durable consumer's name on the stream: replicas with the same name share the events, so it
    must not change. One consumer per event and database, since they share the inbox. Several processes may
    run it.

    `lock_order(event)` sorts the events that take effect together. Name by it the row that the handler locks,
    where different events lock the same ones: processes that lock them in different orders deadlock at every
    other batch.
    """

    def __init__(
        self,
        name: str,
        handler: Handler,
        *,
        subject: str,
        db: Database,
        bus: Bus,
        inbox: type[InboxColumns],
        parked: type[ParkedColumns],
        clock: Clock,
        lock_order: Callable[[Incoming], str] | None = None,
        park_after_failures: int = PARK_AFTER_FAILURES,
        first_retry_seconds: float = 1.0,
    ) -> None:
        self.name = name
        self._handler = handler
        self._subject = subject
        self._db = db
        self._bus = bus
        self._inbox = inbox
        self._parked = parked
        self._clock = clock
        self._lock_order = lock_order
        self._park_after_failures = park_after_failures
        self._first_retry_seconds = first_retry_seconds
        self._pulse = Pulse(name, stale_after_seconds=STALE_AFTER_SECONDS, outages_count=True, clock=clock)
        self._pull: Pull | None = None
        self._swept_at = clock.now()

    def run(self, stop: Stop) -> None:
        """Pull and handle until `stop`; a subscription that ended or fell silent is made anew."""
        stop.on_set(self._interrupt)
        backoff = Backoff()
        while not stop.is_set():
            try:
                self._round(stop)
            except Fatal:
                raise
            except Exception as error:  # noqa: BLE001 - whatever broke the subscription, a new one is the remedy
                self._pulse.trouble(error)
                log_failure(self.name, error)
                self._close()
                stop.wait(backoff.next_seconds())
            else:
                self._pulse.beat()
                backoff.reset()
        self._close()

    def health(self) -> WorkerHealth:
        return self._pulse.health()

    def handle(self, event: Incoming) -> None:
        """One delivery, from the transaction to its settlement; `DatabaseUnavailable` leaves it unsettled."""
        try:
            self._take_effect([event])
        except DatabaseUnavailable as error:
            if not isinstance(error, DatabaseBusy):
                raise
            self._count_failure(event, error)
        except Exception as error:  # noqa: BLE001 - an event that fails must not stop the ones behind it
            self._count_failure(event, error)
        else:
            self._acknowledge([event])

    def list_parked(self, *, limit: int) -> tuple[Sequence[ParkedColumns], int]:
        """Those parked longest ago, at most `limit`; and how many are parked in all."""
        parked = self._parked
        is_parked = parked.parked_at.is_not(None)
        oldest = select(parked).where(is_parked).order_by(parked.parked_at, parked.event_id).limit(limit)
        with self._db.transaction() as tx:
            return tx.scalars(oldest).all(), tx.scalar(select(func.count()).where(is_parked)) or 0

    def retry_parked(self, *, only: uuid.UUID | None = None, after: uuid.UUID | None = None) -> Retried:
        """Handle parked events again, once each, by their ids: `only` this one, or some of those behind `after`.

        For an operator after a mended bug. Those that fail again stay parked. Takes no longer than a call may.
        """
        parked = self._parked
        waiting = select(parked).where(parked.parked_at.is_not(None)).order_by(parked.event_id)
        if only is not None:
            waiting = waiting.where(parked.event_id == only)
        if after is not None:
            waiting = waiting.where(parked.event_id > after)
        with self._db.transaction() as tx:
            rows = tx.scalars(waiting.limit(RETRY_ROWS + 1)).all()
        rows, more = rows[:RETRY_ROWS], len(rows) > RETRY_ROWS
        give_up_at = monotonic_seconds() + RETRY_SECONDS
        ids = []
        for row in rows:
            if monotonic_seconds() > give_up_at:
                more = True
                break
            self.handle(_again(row))
            ids.append(row.event_id)
        with self._db.transaction() as tx:
            left = tx.scalar(select(func.count()).where(parked.event_id.in_(ids))) or 0
        return Retried(len(ids), len(ids) - left, ids[-1] if ids else None, more)

    def _round(self, stop: Stop) -> None:
        if self._pull is None:
            self._pull = self._bus.open_pull(self.name, self._subject)
        events = self._pull.take(BATCH)
        self._pulse.beat()
        try:
            if len(events) > 1 and self._handle_together(events):
                events = []
            while events and not stop.is_set():
                self.handle(events[0])
                self._pulse.beat()
                del events[0]
        except DatabaseUnavailable:
            self._hand_back(events, OUTAGE_RETRY_SECONDS)
            raise
        self._hand_back(events, 0)
        self._sweep()

    def _handle_together(self, events: Sequence[Incoming]) -> bool:
        """One transaction for all that came: several times quicker when there are many.

        False when one of them fails, whichever it is; nothing has happened then and each gets its own.
        """
        try:
            self._take_effect(events if self._lock_order is None else sorted(events, key=self._lock_order))
        except DatabaseUnavailable as error:
            if not isinstance(error, DatabaseBusy):
                raise
            return False
        except Exception:  # noqa: BLE001 - told about when the event that caused it fails on its own
            return False
        self._acknowledge(events)
        return True

    def _hand_back(self, events: Sequence[Incoming], seconds: float) -> None:
        """Ask for them again now: left alone they would come after ten seconds only."""
        for event in events:
            event.retry_after(seconds)

    @retry_conflicts
    def _take_effect(self, events: Sequence[Incoming]) -> None:
        with self._db.transaction() as tx:
            new = take_in(tx, self._inbox, self._parked, events, self._clock.now())
            for event in events:
                if event.event_id in new:
                    new.discard(event.event_id)  # it may have come twice
                    with request_id.bind(event.request_id or request_id.new()), processing(event, self.name):
                        self._handler(tx, event)

    def _acknowledge(self, events: Sequence[Incoming]) -> None:
        EVENTS.labels(self.name, "handled").inc(len(events))
        for event in events:
            event.acknowledge()
            log.info(
                "event_handled",
                consumer=self.name,
                subject=event.subject,
                event_id=str(event.event_id),
                request_id=event.request_id,
                **tracing.ids_of(event.traceparent),
            )

    def _count_failure(self, event: Incoming, failure: Exception) -> None:
        """Note the failure by itself, and either ask for the event again or park it."""
        now = self._clock.now()
        parked = self._parked
        error = f"{type(failure).__name__}: {failure}"[:2000].replace("\x00", "")
        note = insert(parked).values(
            event_id=event.event_id,
            subject=event.subject,
            payload=event.payload,
            request_id=event.request_id,
            error=error,
            attempts=1,
            failed_at=now,
            parked_at=now if self._park_after_failures <= 1 else None,
        )
        again = {
            "error": error,
            "attempts": parked.attempts + 1,
            "failed_at": now,
            "parked_at": case((parked.attempts + 1 >= self._park_after_failures, now), else_=None),
        }
        note = note.on_conflict_do_update(index_elements=[parked.event_id], set_=again)
        with self._db.autocommit() as connection:
            attempts = connection.execute(note.returning(parked.attempts)).scalar_one()
        park = attempts >= self._park_after_failures
        EVENTS.labels(self.name, "parked" if park else "failed").inc()
        log.error(
            "event_parked" if park else "event_failed",
            consumer=self.name,
            subject=event.subject,
            event_id=str(event.event_id),
            request_id=event.request_id,
            **tracing.ids_of(event.traceparent),
            attempts=attempts,
            exc_info=failure,
        )
        if park:
            event.acknowledge()
        else:
            event.retry_after(min(self._first_retry_seconds * 2 ** min(attempts - 1, 10), LAST_RETRY_SECONDS))

    def _sweep(self) -> None:
        now = self._clock.now()
        if now - self._swept_at < SWEEP_EVERY:
            return
        inbox = self._inbox
        old = select(inbox.event_id).where(inbox.received_at < now - KEEP_INBOX).limit(SWEEP_ROWS)
        with self._db.autocommit() as connection:
            swept = connection.execute(delete(inbox).where(inbox.event_id.in_(old.scalar_subquery())))
        if swept.rowcount < SWEEP_ROWS:
            self._swept_at = now

    def _interrupt(self) -> None:
        if self._pull is not None:
            self._pull.interrupt()

    def _close(self) -> None:
        pull, self._pull = self._pull, None
        if pull is not None:
            self._bus.close_pull(pull)


def _again(row: ParkedColumns) -> Incoming:
    """A parked event as if it were delivered: nobody on the stream waits for what comes of it."""
    return Incoming(
        row.event_id,
        row.subject,
        row.payload,
        row.request_id,
        acknowledge=lambda: None,
        retry_after=lambda _seconds: None,
    )
