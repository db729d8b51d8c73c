"""A consumer of one subject. Each event takes effect once, in one transaction, however often it is delivered.

The steps: deliver, verify the signature, begin, note the event in the inbox, do the effect, commit, acknowledge. A
crash at any step repeats the delivery, and the inbox makes the repetition harmless.

Three failures are handled differently:

- The event is not proven (kit.events.signing): it is parked at once and has no effect.
- The handler raises: the event comes again, and after 20 failures it is parked. Parked events are counted and shown,
  never dropped.
- The database is busy or away: the event comes again for as long as that lasts, with growing pauses. It is never parked
  for that.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from sqlalchemy.orm import Session

from kit.audit import acts
from kit.base import request_id
from kit.base.clock import Clock, monotonic_seconds
from kit.db.database import Database, DatabaseBusy, DatabaseUnavailable, retry_conflicts
from kit.events.bus.connection import Bus
from kit.events.bus.messages import Incoming, processing
from kit.events.bus.pull import Pull
from kit.events.inbox import InboxColumns, ParkedColumns, clear_parked, forget, take_in
from kit.events.outcomes import Outcomes
from kit.events.parked import Parking, Place, Retried
from kit.events.proof import Proven, Unproven, Verifier
from kit.events.putoff import is_no_refusal
from kit.observe import metrics, tracing
from kit.observe.log import get_logger, in_one_write
from kit.work.worker import Backoff, Fatal, Pulse, Stop, WorkerHealth, log_failure

_log = get_logger()

WAITING_SECONDS = metrics.gauge(
    "events_waiting_seconds", "Longest time that an event has waited for the database"
)

Handler = Callable[[Session, Incoming], None]
ManyHandler = Callable[[Session, Sequence[Incoming]], None]


BATCH = 128
"""The most events of one transaction. Their locks last for a tenth of a second, and it shares one commit among them."""
PARK_AFTER_FAILURES = 20
OUTAGE_RETRY_SECONDS = 1.0
BUSY_IN_A_ROW = 2
"""After this many events in a row for which the database was too busy, the rest of the batch is handed back."""

STALE_AFTER_SECONDS = 4.0
"""An idle consumer fetches once a second. One that has not for this long has stopped; readiness shows it within 5 s."""

RETRY_ROWS = 100
RETRY_SECONDS = 2.0
SWEEP_ROWS = 5000
SWEEP_EVERY = timedelta(hours=1)
KEEP_INBOX = timedelta(days=90)
"""Longer than the stream (30 days) and every outbox (7 days) can deliver an event again."""


class Consumer:
    """A worker around `handler(tx, event)`, which does the effect in `tx` and raises when it can't.

    The handler works on `tx` and nothing else: it may run again for the same event, and `tx` may hold the
    effects of the events before it.

    `many(tx, events)` has the same effect as `handler` for each of the events, in fewer statements. It is called for
    several events, unless traces are on: there each event has a span of its own.

    `name` is the durable consumer's name on the stream. Replicas with the same name share the events, so the name must
    not change. Use one consumer per subject and database, since consumers share the inbox. Several processes may run
    it.

    `lock_order(event)` is the key that sorts the events of one transaction. When different events lock the same row,
    return the name of that row: otherwise two processes lock the rows in different orders and often deadlock.

    `has_no_effect(event)` returns whether handling the event changes nothing, however often. It raises nothing.

    `ids_in(payload)` returns the ids of the business in a payload, for logs and lists. It raises nothing: the payload
    of an unproven event may be anything.
    """

    def __init__(
        self,
        name: str,
        handler: Handler,
        *,
        db: Database,
        bus: Bus,
        inbox: type[InboxColumns],
        parked: type[ParkedColumns],
        verifier: Verifier,
        clock: Clock,
        many: ManyHandler | None = None,
        lock_order: Callable[[Incoming], str] | None = None,
        has_no_effect: Callable[[Incoming], bool] = lambda _event: False,
        ids_in: Callable[[bytes], Mapping[str, str]] = lambda _payload: {},
        park_after_failures: int = PARK_AFTER_FAILURES,
        first_retry_seconds: float = 1.0,
    ) -> None:
        self.name = name
        self._handler = handler
        self._many = many
        self._db = db
        self._bus = bus
        self._inbox = inbox
        self._parked = parked
        self._parking = Parking(db, parked, clock)
        self._verifier = verifier
        self._clock = clock
        self._lock_order = lock_order
        self._has_no_effect = has_no_effect
        self.ids_in = ids_in
        self._pulse = Pulse(name, stale_after_seconds=STALE_AFTER_SECONDS, outages_count=True, clock=clock)
        self._pull: Pull | None = None
        self._outcomes = Outcomes(
            name,
            parking=self._parking,
            clock=clock,
            ids_in=ids_in,
            park_after_failures=park_after_failures,
            first_retry_seconds=first_retry_seconds,
        )
        self._swept_at = clock.now()

    def run(self, stop: Stop) -> None:
        """Pulls and handles until `stop`; replaces a subscription that ended or fell silent."""
        stop.on_set(self._interrupt)
        backoff = Backoff()
        while not stop.is_set():
            try:
                self._round(stop)
            except Fatal:
                raise
            except Exception as error:  # noqa: BLE001 - whatever the cause, a new subscription is the remedy
                self._pulse.trouble(error)
                log_failure(self.name, error)
                self._close()
                stop.wait(backoff.next_seconds())
            else:
                self._pulse.beat()
                backoff.reset()
        self._close()

    def health(self) -> WorkerHealth:
        """Returns the health; `detail` has the longest wait for the database, unless there is a worse trouble."""
        health = self._pulse.health()
        seconds = self._outcomes.put_off.longest_seconds(self._clock.now())
        count = len(self._outcomes.put_off)
        if health.detail or not count:
            return health
        return replace(
            health, detail=f"{count} events wait for the database, the longest for {seconds:.0f} s"
        )

    def handle(self, event: Incoming) -> None:
        """Handles one delivery, from its signature to its settlement.

        Raises `DatabaseUnavailable` when the database is away: the delivery is not settled then.
        """
        proven, unproven = self._verified([event])
        for each in proven:
            self._handle(each)
        self._outcomes.park(unproven)

    def list_parked(self, *, limit: int, after: Place | None = None) -> tuple[Sequence[ParkedColumns], int]:
        """Returns the events parked longest ago after this place, at most `limit`, and the number of all."""
        return self._parking.oldest(after=after, limit=limit)

    def retry_parked(self, *, only: uuid.UUID | None = None, after: uuid.UUID | None = None) -> Retried:
        """Handles parked events again, once each, in the order of their ids: `only` this one, or some of those after
        `after`.

        For an operator who has removed the cause: a bug, or a public key that was missing. Events that fail again stay
        parked. It ends within the time of a call.
        """
        events, more = self._parking.after(only=only, after=after, limit=RETRY_ROWS)
        if events:
            retried = [parked.row_id for parked in events]
            with self._db.transaction() as tx:
                acts.record(tx, "parked.retry", f"event:{only or 'parked'}", after={"event_ids": retried})
        give_up_at = monotonic_seconds() + RETRY_SECONDS
        ids = []
        for parked in events:
            if monotonic_seconds() > give_up_at:
                more = True
                break
            proven, unproven = self._verified([parked.event])
            for event in proven:
                self._handle(event, row_id=parked.row_id)
            for _, failure in unproven:
                self._parking.note_again(parked.row_id, failure)
            ids.append(parked.row_id)
        return Retried(len(ids), len(ids) - self._parking.count(ids), ids[-1] if ids else None, more)

    def discard_parked(self, row_id: uuid.UUID, *, even_if_true: bool = False) -> bool:
        """Deletes a parked event that is not proven; false when none has this id. Raises `MayBeTrue`."""
        discarded = self._parking.discard(row_id, self._verifier, even_if_true=even_if_true)
        if discarded is not None:
            _log.warning(
                "parked_discarded", **self._outcomes.fields_of(discarded.event), parked_id=str(row_id)
            )
        return discarded is not None

    def _round(self, stop: Stop) -> None:
        if self._pull is None:
            self._pull = self._bus.open_pull(self.name)
        events, unproven = self._verified(self._pull.take(BATCH))
        self._pulse.beat()
        try:
            with in_one_write():
                self._pass_without_effect(events)
                if len(events) > 1 and self._handle_together(events):
                    events.clear()
            self._one_by_one(events, stop)
            self._outcomes.park(unproven)
        except DatabaseUnavailable:
            self._hand_back([*events, *(event for event, _ in unproven)], OUTAGE_RETRY_SECONDS)
            raise
        finally:
            WAITING_SECONDS.set(self._outcomes.put_off.longest_seconds(self._clock.now()))
        self._sweep()

    def _pass_without_effect(self, events: list[Proven]) -> None:
        """Acknowledges and removes the events without any effect. They need no inbox; parked copies of them go."""
        without_effect: list[Proven] = []
        others: list[Proven] = []
        for event in events:
            (without_effect if self._has_no_effect(event) else others).append(event)
        if without_effect:
            clear_parked(self._db, self._parked, without_effect)
            for event in without_effect:
                with processing(event, self.name):
                    pass  # its trace shows that the fact came here
            self._outcomes.acknowledge(without_effect)
            events[:] = others

    def _verified(self, events: Sequence[Incoming]) -> tuple[list[Proven], list[tuple[Incoming, Unproven]]]:
        """Returns the proven events, and the others with the reason."""
        proven: list[Proven] = []
        unproven: list[tuple[Incoming, Unproven]] = []
        for event in events:
            try:
                proven.append(self._verifier.proven(event))
            except Unproven as failure:
                unproven.append((event, failure))
        return proven, unproven

    def _one_by_one(self, events: list[Proven], stop: Stop) -> None:
        """Handles each event by itself. At the stop, or while the database is busy for all, gives the rest back."""
        busy = 0
        while events and not stop.is_set() and busy < BUSY_IN_A_ROW:
            busy = 0 if self._handle(events[0]) else busy + 1
            self._pulse.beat()
            del events[0]
        self._hand_back(events, OUTAGE_RETRY_SECONDS if busy else 0)
        events.clear()

    def _handle(self, event: Proven, *, row_id: uuid.UUID | None = None) -> bool:
        """Returns false when the event has to wait for the database. Raises `DatabaseUnavailable` when that is away.

        `row_id`: the id of its parked row, if it is parked already. An event that was not proven is parked under
        another id.
        """
        try:
            self._take_effect([event])
        except Exception as error:
            if isinstance(error, DatabaseUnavailable) and not isinstance(error, DatabaseBusy):
                raise
            if is_no_refusal(error):
                self._outcomes.postpone(event, error)
                return False
            self._outcomes.count_failure(event, error, row_id or event.event_id)
        else:
            self._outcomes.acknowledge([event])
        return True

    def _handle_together(self, events: Sequence[Proven]) -> bool:
        """Handles all events in one transaction, which is several times quicker when there are many.

        Returns false when any of them fails. Nothing has happened then, and each is handled in its own transaction.
        """
        try:
            self._take_effect(events if self._lock_order is None else sorted(events, key=self._lock_order))
        except DatabaseUnavailable as error:
            if not isinstance(error, DatabaseBusy):
                raise
            return False
        except Exception:  # noqa: BLE001 - logged when the event that caused it fails on its own
            return False
        self._outcomes.acknowledge(events)
        return True

    def _hand_back(self, events: Sequence[Incoming], seconds: float) -> None:
        """Makes NATS deliver the events again at once: without this they would come after ten seconds."""
        for event in events:
            event.retry_after(seconds)

    @retry_conflicts
    def _take_effect(self, events: Sequence[Proven]) -> None:
        with self._db.transaction() as tx:
            new = take_in(tx, self._inbox, self._parked, events, self._clock.now())
            fresh = list({event.event_id: event for event in events if event.event_id in new}.values())
            if self._many is not None and len(fresh) > 1 and not tracing.is_on():
                self._many(tx, fresh)
                return
            for event in fresh:
                with request_id.bind(event.request_id or request_id.new()), processing(event, self.name):
                    self._handler(tx, event)

    def _sweep(self) -> None:
        now = self._clock.now()
        if now - self._swept_at < SWEEP_EVERY:
            return
        if forget(self._db, self._inbox, before=now - KEEP_INBOX, limit=SWEEP_ROWS) < SWEEP_ROWS:
            self._swept_at = now

    def _interrupt(self) -> None:
        if self._pull is not None:
            self._pull.interrupt()

    def _close(self) -> None:
        pull, self._pull = self._pull, None
        if pull is not None:
            self._bus.close_pull(pull)
