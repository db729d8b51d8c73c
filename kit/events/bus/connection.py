"""The process's connection to NATS."""

import asyncio
import threading
import uuid
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial

from nats.js import JetStreamContext

from kit.base.clock import SystemClock, monotonic_seconds
from kit.base.ids import new_id
from kit.events.bus import reading
from kit.events.bus.client import Client
from kit.events.bus.listening import Listener, Spaced, callback_of
from kit.events.bus.loop import LoopThread
from kit.events.bus.messages import (
    EVENT_ID_HEADER,
    NATS_ERRORS,
    SAME_EVENT_HEADER,
    BusClosed,
    BusRefused,
    BusUnavailable,
    Outgoing,
    count_refusal,
    error_text,
    is_missing_right,
    is_wrong_password,
    publishing,
)
from kit.events.bus.pull import Pull
from kit.events.bus.stream import STREAM_TIMEOUT_SECONDS, OwnStream, StreamSeen
from kit.events.subjects import STREAM
from kit.observe.log import get_logger
from kit.work.worker import Stop, WorkerHealth

_log = get_logger()

PUBLISH_TIMEOUT_SECONDS = 5.0
PUBLISH_IN_FLIGHT = 64
READ_SECONDS = 30.0
RECONNECT_WAIT_SECONDS = 1
CHECK_SECONDS = 5.0
SILENT_SECONDS = 120
"""nats-py notices a silent server within 40 s and reports every attempt to reconnect. Without an answer or a report for
this long, a task of nats-py or of ours has ended: the process must be restarted.
"""

CLOSE_SECONDS = 5.0


NOT_CONNECTED = "not connected to NATS"
NOT_LET_IN = "NATS refuses the password of this process"


class Bus:
    """The connection, usable from any thread. Call `start()` in the process that uses it (after forking), `close()` at
    the end.

    It is also a `Worker`: it ends the process when the connection is closed for good, or shows no sign of life.
    """

    def __init__(self, url: str, *, name: str, ca: str = "", stream: OwnStream | None = None) -> None:
        """`name` is the user's name on the server: replies go to `_INBOX.<name>`, which no other user may read.

        `ca`: see `kit.events.bus.client`. `stream`: the stream of the facts, if this process owns it; None: another
        service owns it, and this process waits until it is there.
        """
        self.name = "bus"
        self._url = url
        self._client_name = name
        self._stream = stream
        self._loop = LoopThread("bus")
        self._client = Client(ca=ca)
        self._closing = False
        self._closed = threading.Event()
        self._ready = threading.Event()
        self._pulls: list[Pull] = []
        self._listeners: list[tuple[str, Listener]] = []
        self._listening = 0
        self._logged = ""
        self._trouble = NOT_CONNECTED
        self._missing_right = ""
        self._clock = SystemClock()
        self._connected_at: datetime | None = None
        self._alive_at_seconds = monotonic_seconds()

    def start(self) -> None:
        """Starts to connect in the background; NATS need not be up yet. A second call does nothing."""
        if not self._loop.running:
            self._alive_at_seconds = monotonic_seconds()
            self._loop.start()
            self._loop.post(self._connect)

    def wait_ready(self, timeout_seconds: float) -> bool:
        """Waits until the bus is connected and its own stream is there; false after `timeout_seconds`."""
        return self._ready.wait(timeout_seconds)

    def close(self) -> None:
        """Sends the messages on their way, then disconnects. The bus cannot be used again."""
        self._closing = True
        with suppress(BusUnavailable):
            self._loop.call(self._disconnect, timeout_seconds=CLOSE_SECONDS)
        self._loop.stop()

    @property
    def connected(self) -> bool:
        """Whether the bus is connected now."""
        return bool(self._client.is_connected)

    @property
    def healthy(self) -> bool:
        """False once the connection is closed for good. A temporary outage counts as healthy."""
        return not self._closed.is_set()

    @property
    def stream_seen(self) -> StreamSeen | None:
        """The stream at the last check; None before the first check and in a process that does not own the stream."""
        return None if self._stream is None else self._stream.seen

    def publish(self, messages: Sequence[Outgoing]) -> list[uuid.UUID]:
        """Publishes all messages, many in flight; returns the ids of those that the stream has stored.

        A message whose id is missing may be stored all the same: publish it again with the same id. Raises
        `BusUnavailable` when there is no connection.
        """
        self._require_connection()
        rounds = -(-len(messages) // PUBLISH_IN_FLIGHT)
        timeout_seconds = (rounds + 1) * PUBLISH_TIMEOUT_SECONDS + STREAM_TIMEOUT_SECONDS
        return self._loop.call(self._publish, messages, timeout_seconds=timeout_seconds)

    def read(self, *, since: datetime, after_seq: int = 0, limit: int) -> reading.Page:
        """Returns facts that the stream has stored since that time; only its owner may. `kit.events.bus.reading`.

        Raises `BusUnavailable`, and `BusRefused` when a right is missing.
        """
        self._require_connection()
        self._missing_right = ""
        page = partial(reading.read, self._client, since=since, after_seq=after_seq, limit=limit)
        try:
            return self._loop.call(page, timeout_seconds=READ_SECONDS)
        except BusUnavailable as silent:
            if self._missing_right:  # NATS tells the connection, and does not answer the request
                raise BusRefused(self._missing_right) from silent
            raise

    def open_pull(self, durable: str) -> Pull:
        """Opens the deliveries to the durable consumer, which the stream's owner makes.

        Raises `BusUnavailable`.
        """
        self._require_connection()
        pull = Pull(self._loop, self._client, durable)
        pull.open()
        self._pulls.append(pull)
        return pull

    def close_pull(self, pull: Pull) -> None:
        """Ends the deliveries. Messages without an acknowledgement are delivered again to the next pull."""
        if pull in self._pulls:
            self._pulls.remove(pull)
        pull.close()

    def hint(self, subject: str, data: bytes = b"") -> None:
        """Sends a hint to the current listeners; it is lost without listeners or NATS. Never waits or raises."""
        self._loop.post(self._send, subject, data)

    def hint_all(self, subjects: Sequence[str]) -> None:
        """Sends a hint on each of these subjects, as `hint` does."""
        self._loop.post(self._send_all, subjects)

    def on_hint(self, subject: str, listener: Listener, *, every_seconds: float = 0.0) -> None:
        """Calls `listener(subject, data)` for every hint on `subject` (NATS wildcards work), from now on.

        It runs on the bus's own thread: ring a signal there, do no work. `every_seconds` is the shortest time between
        two calls: of the hints that come sooner only the last one counts, at the end of the pause.
        """
        self._listeners.append((subject, Spaced(listener, every_seconds) if every_seconds else listener))
        self._loop.post(self._listen)

    def run(self, stop: Stop) -> None:
        """Waits for the stop. Raises `BusClosed` when the connection is closed for good or shows no sign of life."""
        over = threading.Event()
        stop.on_set(over.set)
        while not over.wait(1):
            self._require_life()
            silent_seconds = monotonic_seconds() - self._alive_at_seconds
            if silent_seconds > SILENT_SECONDS and not self._closing:
                raise BusClosed(f"no sign of life from the connection to NATS for {silent_seconds:.0f} s")

    def health(self) -> WorkerHealth:
        """Returns the health: not healthy only when the connection is closed for good. `detail` reports a temporary
        outage.
        """
        if self.connected:
            self._connected_at = self._clock.now()
        detail = "" if self.connected else self._trouble
        return WorkerHealth(self.name, self.healthy, self._connected_at, detail)

    def _require_life(self) -> None:
        if not self.healthy and not self._closing:
            raise BusClosed("the connection to NATS was closed for good")

    def _require_connection(self) -> None:
        self._require_life()
        if not self.connected:
            raise BusUnavailable(self._trouble)

    # Everything below runs on the loop's thread.

    async def _connect(self) -> None:
        try:
            await self._client.connect_to(
                self._url,
                name=self._client_name,
                inbox_prefix=f"_INBOX.{self._client_name}",
                max_reconnect_attempts=-1,  # the default gives up after 60, silently
                reconnect_time_wait=RECONNECT_WAIT_SECONDS,
                connect_timeout=2,
                ping_interval=10,
                max_outstanding_pings=2,
                error_cb=self._on_error,
                disconnected_cb=self._on_disconnected,
                reconnected_cb=self._on_reconnected,
                closed_cb=self._on_closed,
            )
        except Exception:  # noqa: BLE001  any error abandons this connection; the next is made
            _log.exception("bus_abandoned")
            await self._on_closed()
            return
        self._logged, self._trouble = "", NOT_CONNECTED
        _log.info("bus_connected")
        while True:
            try:
                await self._check()
            except Exception:  # noqa: BLE001  the check must go on after any error
                _log.exception("bus_check_failed")
            await asyncio.sleep(CHECK_SECONDS)

    async def _check(self) -> None:
        """Does the recurring work of a connection; what fails is tried again at the next check."""
        if not self._client.is_connected:
            return
        self._loop.spawn(self._ping())
        await self._listen()
        await self._check_stream()

    async def _ping(self) -> None:
        """Records the time of the server's answer, however late it is.

        nats-py 2.16 stops reading when the answer to an abandoned ping comes, so the timeout is long.
        """
        with suppress(*NATS_ERRORS):
            await self._client.rtt(SILENT_SECONDS)
            self._alive_at_seconds = monotonic_seconds()

    async def _disconnect(self) -> None:
        if self._client.is_connected:
            await self._client.flush(2)
        await self._client.close()

    async def _check_stream(self) -> None:
        """Lets the owner of the stream keep it and read its state."""
        if not self._client.is_connected:
            return
        if self._stream is not None and not await self._stream.check(self._client):
            self._ready.clear()
            return
        self._ready.set()

    async def _publish(self, messages: Sequence[Outgoing]) -> list[uuid.UUID]:
        jetstream = self._client.jetstream(timeout=PUBLISH_TIMEOUT_SECONDS)
        room = asyncio.Semaphore(PUBLISH_IN_FLIGHT)
        stored: list[uuid.UUID] = []
        failures: list[BaseException] = []

        async def publish(message: Outgoing) -> None:
            async with room:
                with publishing(message) as span:
                    headers = message.headers(span.traceparent)
                    try:
                        await _store(jetstream, message, headers)
                        stored.append(message.event_id)
                    except NATS_ERRORS as error:
                        failures.append(error)
                        span.fail(type(error).__qualname__)

        await asyncio.gather(*(publish(message) for message in messages))
        if failures:
            _log.warning(
                "publish_failed", count=len(failures), of=len(messages), error=error_text(failures[0])
            )
            await self._check_stream()
        return stored

    async def _send(self, subject: str, data: bytes) -> None:
        if self._client.is_connected:
            with suppress(*NATS_ERRORS):
                await self._client.publish(subject, data)

    async def _send_all(self, subjects: Sequence[str]) -> None:
        for subject in subjects:
            await self._send(subject, b"")

    async def _listen(self) -> None:
        """Subscribes the listeners that have no subscription yet; nats-py keeps subscriptions over reconnects."""
        while self._client.is_connected and self._listening < len(self._listeners):
            subject, listener = self._listeners[self._listening]
            self._listening += 1
            try:
                await self._client.subscribe(subject, cb=callback_of(listener))
            except BaseException:
                self._listening -= 1  # the next check tries it again
                raise

    async def _on_error(self, error: Exception) -> None:
        """Logs an error once, not at every attempt to reconnect."""
        self._alive_at_seconds = monotonic_seconds()
        count_refusal(error)
        if is_wrong_password(error):
            self._trouble = NOT_LET_IN
        elif is_missing_right(error):
            self._missing_right = error_text(error)
        elif isinstance(error, OSError):  # nats-py reports other errors after a refusal
            self._trouble = NOT_CONNECTED
        trouble = error_text(error)
        if trouble != self._logged:
            self._logged = trouble
            _log.warning("bus_failed", error=trouble)

    async def _on_disconnected(self) -> None:
        self._alive_at_seconds = monotonic_seconds()
        self._ready.clear()
        if not self._closing:
            _log.warning("bus_disconnected")

    async def _on_reconnected(self) -> None:
        self._alive_at_seconds = monotonic_seconds()
        self._logged, self._trouble = "", NOT_CONNECTED
        _log.info("bus_reconnected")
        self._loop.spawn(self._resume())  # the client finishes reconnecting only after this returns

    async def _resume(self) -> None:
        await self._listen()
        await self._check_stream()
        for pull in list(self._pulls):
            pull.forget_request()

    async def _on_closed(self) -> None:
        self._ready.clear()
        self._closed.set()


async def _store(jetstream: JetStreamContext, message: Outgoing, headers: dict[str, str]) -> None:
    """Publishes the message. Publishes a signed one once more if JetStream drops it as a duplicate.

    The message in the stream under that id may be forged: the true fact must be there too. Inboxes drop a second copy.
    """
    stored = await jetstream.publish(message.subject, message.payload, stream=STREAM, headers=headers)
    if stored.duplicate and message.signature:
        again = {EVENT_ID_HEADER: str(new_id()), SAME_EVENT_HEADER: str(message.event_id)}
        await jetstream.publish(message.subject, message.payload, stream=STREAM, headers=headers | again)
