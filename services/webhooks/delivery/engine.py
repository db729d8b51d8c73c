"""The worker that delivers due events: claims, passes them to lanes, sends, records; sleeps in between.

It runs on the courier's loop; statements and calls to identity run in three threads beside it. It sleeps until the next
due time or a wake-up, and checks every few seconds for events that other processes added.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from kit.base.clock import Clock, monotonic_seconds
from kit.base.ids import new_id
from kit.db.database import Database
from kit.observe.log import get_logger
from kit.rpc.errors import Refused
from kit.work.worker import Backoff, Outage, Pulse, Stop, WorkerHealth, log_failure
from services.webhooks.clients import IdentityClient
from services.webhooks.delivery.courier import Courier
from services.webhooks.delivery.fresh import Fresh
from services.webhooks.delivery.lanes import Lanes
from services.webhooks.delivery.record import Recorder
from services.webhooks.delivery.sender import Sender
from services.webhooks.delivery.taking import Taking
from services.webhooks.delivery.wake import Wake
from services.webhooks.store import claims
from services.webhooks.store.stages import Claimed, LaneKey, Outcome, Recorded, Rooms, Shipment, lane_of

_log = get_logger()

T = TypeVar("T")

MOST_SENDING = 512
MOST_CLAIMED = 6000
CLAIM_ROWS = 1000
RECORD_ROWS = 500
RECORD_GATHER_SECONDS = 0.05
"""Time in which results gather to be written together: a statement costs as much as some thirty rows."""

MOST_UNRECORDED = 2 * RECORD_ROWS
"""Above this number of unwritten results nothing is claimed: if the process dies, all of them are sent again."""
POLL_SECONDS = 2.0
"""Longest delay until an event that another process added or freed is noticed."""

LATE_COMMIT = timedelta(seconds=0.5)
"""The longest time that an event may be committed after it was due. The read of all lanes finds later ones."""
NEW_EVENTS_READ = 5000
"""The number of new events read at a time, which takes some milliseconds; the next read continues there. The read
of all lanes finds a lane sooner if its only event is far behind."""
LANES_READ = 10_000
LANES_PAUSE_SECONDS = POLL_SECONDS
LANES_PAUSE_FACTOR = 20
"""`LANES_READ` lanes are checked for any due event, then the next ones. The pause in between is this many times the
time of the check: a check costs one step per waiting lane, and a merchant may have any number of lanes."""

LEAST_SLEEP_SECONDS = 0.05
STALE_AFTER_SECONDS = 30.0
END_SECONDS = 2.0
"""Part of the process's time for stopping that is left to the engine after its attempts have ended."""


@dataclass(frozen=True, kw_only=True)
class EngineParts:
    db: Database
    clock: Clock
    courier: Courier
    identity: IdentityClient
    recorder: Recorder
    wake: Wake
    fresh: Fresh
    timeout_seconds: float
    lease_seconds: float
    stop_seconds: float

    @property
    def drain_seconds(self) -> float:
        """Longest wait at the stop for attempts under way, and for their results to be written."""
        return max(self.stop_seconds - END_SECONDS, self.stop_seconds / 2)


class Engine:
    """A `kit.work.worker.Worker`; any number of processes may run one."""

    name = "delivery"

    def __init__(self, parts: EngineParts) -> None:
        self._parts = parts
        self._pulse = Pulse(self.name, stale_after_seconds=STALE_AFTER_SECONDS, clock=parts.clock)

    def run(self, stop: Stop) -> None:
        stop.on_set(self._parts.wake.set)

        async def run(sender: Sender) -> None:
            await _Run(self._parts, self._pulse, sender, stop).run()

        self._parts.courier.submit(run).result()

    def health(self) -> WorkerHealth:
        return self._pulse.health()


class _Run:
    """One run of the engine, on the loop. New events come from other threads (services.webhooks.delivery.fresh)."""

    def __init__(self, parts: EngineParts, pulse: Pulse, sender: Sender, stop: Stop) -> None:
        self._parts = parts
        self._pulse = pulse
        self._sender = sender
        self._stop = stop
        self._lanes = Lanes(most_sending=MOST_SENDING, most_claimed=MOST_CLAIMED)
        self._ended: asyncio.Queue[Outcome] = asyncio.Queue()
        self._sending: set[asyncio.Task[None]] = set()
        self._giving_back: set[asyncio.Task[None]] = set()
        # One records, one claims, one requests secrets of new events.
        self._threads = ThreadPoolExecutor(3, thread_name_prefix="delivery")
        self._taking = Taking(
            parts.identity,
            self._threads,
            self._lanes,
            added=self._send_what_may_be_sent,
            failed=self._note_trouble,
            give_back=self._give_back,
            release=self._release,
        )
        self._worker = claims.worker_name()
        self._read_until = parts.clock.now()
        self._last_lane = claims.BEFORE_ALL
        self._next_lanes_seconds = 0.0

    async def run(self) -> None:
        self._parts.wake.attach()
        recording = asyncio.create_task(self._record_for_ever())
        self._parts.fresh.open(self._taking)
        try:
            await self._claim_until_stopped()
            self._parts.fresh.close()
            await self._drain()
        finally:
            self._parts.fresh.close()
            recording.cancel()
            for task in self._sending:
                task.cancel()  # their leases run out, and the events are due again
            self._threads.shutdown(wait=False)

    # -- claim

    async def _claim_until_stopped(self) -> None:
        backoff = Backoff()
        while not self._stop.is_set():
            try:
                claimed = await self._claim()
                sleep_seconds = 0.0 if claimed else await self._seconds_until_due()
            except Exception as error:  # noqa: BLE001  the engine survives any error of a round
                self._note_trouble(error)
                sleep_seconds = backoff.next_seconds()
            else:
                self._pulse.beat()
                backoff.reset()
                self._taking.paused = False
            if sleep_seconds:
                await self._parts.wake.wait_on_loop(sleep_seconds)

    async def _claim(self) -> bool:
        """Finds lanes with due events, claims one batch and adds it to the lanes. Returns whether another batch may
        follow.
        """
        if not self._lanes.room or self._ended.qsize() > MOST_UNRECORDED:
            return False
        await self._note_due_lanes()
        rooms = self._lanes.rooms(CLAIM_ROWS)
        if not rooms.lanes:
            return False
        claimed = await self._in_thread(lambda: self._claim_batch(rooms))
        self._lanes.note_claimed(rooms, claimed)
        if claimed:
            self._lanes.add(await self._with_secrets(claimed))
            self._send_what_may_be_sent()
        return True

    async def _note_due_lanes(self) -> None:
        """Notes the lanes of events that became due since the read before (`NEW_EVENTS_READ`), and now and then the
        lanes among some (`LANES_READ`) that have anything due.
        """
        started = monotonic_seconds()
        now = self._parts.clock.now()
        since = min(now, self._read_until) - LATE_COMMIT
        at_lanes = started >= self._next_lanes_seconds

        def read_lanes() -> tuple[list[LaneKey], datetime | None]:
            with self._parts.db.autocommit() as connection:
                new = claims.lanes_due_since(connection, since, most=NEW_EVENTS_READ, now=now)
                if not at_lanes:
                    return new.due, new.read_to
                seen = claims.lanes_due_after(connection, self._last_lane, most=LANES_READ, now=now)
                self._last_lane = seen.last_lane
                return new.due + seen.due, new.read_to

        due, read_to = await self._in_thread(read_lanes)
        self._lanes.note_due(due)
        # The next read starts where this one ended. LATE_COMMIT is added, or the next one would read the same again.
        self._read_until = now if read_to is None else read_to + LATE_COMMIT
        if at_lanes:
            ended = monotonic_seconds()
            self._next_lanes_seconds = ended + max(
                LANES_PAUSE_SECONDS, LANES_PAUSE_FACTOR * (ended - started)
            )

    def _claim_batch(self, rooms: Rooms) -> list[Claimed]:
        now = self._parts.clock.now()
        until = now + timedelta(seconds=self._parts.lease_seconds)
        lease = claims.Lease(token=new_id(), worker=self._worker, now=now, until=until)
        with self._parts.db.autocommit() as connection:
            return claims.claim_due(connection, lease, rooms)

    async def _with_secrets(self, claimed: list[Claimed]) -> list[Shipment]:
        """Adds the secrets that sign now. When identity does not answer, gives all events back: no receiver failed."""
        keys = {(each.terms.merchant_id, each.terms.key_id) for each in claimed}
        try:
            secrets = await self._in_thread(lambda: self._parts.identity.signing_secrets(keys))
        except BaseException:
            await self._in_thread(lambda: self._release(claimed))
            self._lanes.note_due(lane_of(each) for each in claimed)
            raise
        return [Shipment(each, secrets.get((each.terms.merchant_id, each.terms.key_id))) for each in claimed]

    async def _seconds_until_due(self) -> float:
        now = self._parts.clock.now()

        def next_due_at() -> datetime | None:
            with self._parts.db.autocommit() as connection:
                return claims.next_due_at(connection, now=now)

        at = await self._in_thread(next_due_at)
        seconds = POLL_SECONDS if at is None else (at - now).total_seconds()
        return min(POLL_SECONDS, max(LEAST_SLEEP_SECONDS, seconds))

    def _note_trouble(self, error: Exception) -> None:
        self._taking.paused = True  # until a claim succeeds, new events wait for one
        trouble = _as_outage(error)
        self._pulse.trouble(trouble)
        log_failure(Engine.name, trouble)

    # -- send

    def _send_what_may_be_sent(self) -> None:
        while (shipment := self._lanes.take()) is not None:
            task = asyncio.create_task(self._send_in_turn(shipment))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _send_in_turn(self, shipment: Shipment) -> None:
        """Sends one event after the other while there is one to send: a task for each request would cost more."""
        following: Shipment | None = shipment
        while following is not None:
            following = await self._send(following)

    async def _send(self, shipment: Shipment) -> Shipment | None:
        """Sends one event; returns the next one to send."""
        outcome: Outcome | None = None
        try:
            # A lease that would run out during the attempt is left to the next claim: two must not send at once.
            if (
                self._parts.clock.now() + timedelta(seconds=self._parts.timeout_seconds)
                < shipment.claimed.lease_until
            ):
                outcome = await self._sender.send(shipment)
                self._ended.put_nowait(outcome)
        finally:
            finished = self._lanes.finish(shipment, outcome)
            if finished.given_back:
                self._give_back([each.claimed for each in finished.given_back])
            if finished.opened:
                self._parts.wake.ring()
        following = self._lanes.take()
        self._send_what_may_be_sent()
        return following

    def _give_back(self, claimed: Sequence[Claimed]) -> None:
        """Gives the events back without waiting for it; if it fails, their leases run out."""
        task = asyncio.create_task(self._in_thread(lambda: self._release(claimed)))
        self._giving_back.add(task)
        task.add_done_callback(self._given_back)

    def _given_back(self, task: asyncio.Task[None]) -> None:
        self._giving_back.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log_failure(Engine.name, error if isinstance(error, Outage) else Outage(str(error)))

    # -- record

    async def _record_for_ever(self) -> None:
        """Writes results in batches; while one batch is written the next one gathers."""
        while True:
            batch = [await self._ended.get()]
            if not self._stop.is_set() and self._ended.qsize() < RECORD_ROWS:
                await asyncio.sleep(RECORD_GATHER_SECONDS)
            while len(batch) < RECORD_ROWS and not self._ended.empty():
                batch.append(self._ended.get_nowait())
            recorded = await self._recorded(batch)
            soon = self._parts.clock.now() + timedelta(seconds=POLL_SECONDS)
            if any(each.next_retry_at is not None and each.next_retry_at < soon for each in recorded):
                self._parts.wake.ring()
            for _ in batch:
                self._ended.task_done()
            if self._ended.qsize() <= MOST_UNRECORDED < self._ended.qsize() + len(batch):
                self._parts.wake.ring()

    async def _recorded(self, batch: list[Outcome]) -> list[Recorded]:
        """Records the results, and tries again until it succeeds: a request must not be repeated because the database
        was away.
        """
        backoff, again = Backoff(), False
        while True:
            try:
                return await self._in_thread(partial(self._parts.recorder.record, batch, again=again))
            except Outage as error:
                again = True
                log_failure(Engine.name, error)
            except Exception as error:  # noqa: BLE001  a result that can't be written must not stop others
                _log.error("webhook_record_failed", outcomes=len(batch), exc_info=error)
                if len(batch) == 1:
                    return []
                # One of them can't be written: written one by one, it stops no other.
                return [each for one in batch for each in await self._recorded([one])]
            await asyncio.sleep(backoff.next_seconds())

    # -- stop

    async def _drain(self) -> None:
        """Gives back events that were not begun, waits for attempts under way, writes their results."""
        try:
            async with asyncio.timeout(self._parts.drain_seconds):
                await self._taking.end()
                waiting = [shipment.claimed for shipment in self._lanes.drain()]
                if waiting:
                    await self._in_thread(lambda: self._release(waiting))
                if self._sending:
                    await asyncio.wait(self._sending)
                await self._ended.join()
        except (TimeoutError, Outage) as error:
            _log.warning(
                "deliveries_interrupted",
                under_way=len(self._sending),
                unwritten=self._ended.qsize(),
                error=str(error),
            )

    def _release(self, claimed: Sequence[Claimed]) -> None:
        with self._parts.db.autocommit() as connection:
            claims.release(connection, claimed)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


def _as_outage(error: Exception) -> Exception:
    """Turns an error of an absent identity service into an outage, which is logged in one line."""
    if isinstance(error, Refused) and error.reason == "DB_UNAVAILABLE":
        return Outage(f"identity: {error.message}")
    return error
