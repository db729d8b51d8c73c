"""The event loop that sends: in a thread of its own, shared by the engine and by manual resends."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import uvloop

from kit.base.clock import Clock
from kit.egress.client import Egress
from services.webhooks.delivery.seals import EventSeals
from services.webhooks.delivery.sender import Sender
from services.webhooks.store.stages import Outcome, Shipment

T = TypeVar("T")


class Courier:
    """Starts its thread at the first use: a process that only serves calls has none until the first resend."""

    def __init__(
        self, *, clock: Clock, seals: EventSeals, timeout_seconds: float, allow_private: bool
    ) -> None:
        self._clock = clock
        self._seals = seals
        self._timeout_seconds = timeout_seconds
        self._allow_private = allow_private
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None
        self._thread: threading.Thread | None = None
        self._sender: Sender | None = None

    def send(self, shipment: Shipment) -> Outcome:
        """Makes one attempt and waits for it: at most the timeout and the time of its body. Not from the loop."""

        async def attempt(sender: Sender) -> Outcome:
            return await sender.send(shipment)

        return self.submit(attempt).result()

    def submit(self, work: Callable[[Sender], Coroutine[Any, Any, T]]) -> Future[T]:
        """Runs `work` on the loop, with its sender; from any thread outside of it."""
        loop, sender = self._started()
        return asyncio.run_coroutine_threadsafe(work(sender), loop)

    def close(self) -> None:
        """Ends the thread and cancels its work. The next use starts it again."""
        with self._lock:
            if self._thread is not None:
                assert self._loop is not None and self._closing is not None
                self._loop.call_soon_threadsafe(self._closing.set)
                self._thread.join()
                self._thread = None

    def _started(self) -> tuple[asyncio.AbstractEventLoop, Sender]:
        with self._lock:
            if self._thread is None:
                ready = threading.Event()
                self._sender = None
                self._thread = threading.Thread(target=self._run, args=(ready,), name="courier", daemon=True)
                self._thread.start()
                ready.wait()
            if self._loop is None or self._sender is None:
                self._thread = None
                raise RuntimeError("the courier could not start, see the log")
            return self._loop, self._sender

    def _run(self, ready: threading.Event) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve(ready))
        finally:
            ready.set()  # also when it could not start: `_started` waits for it and raises

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._closing = asyncio.Event()
        async with Egress(allow_private=self._allow_private) as egress:
            self._sender = Sender(egress, self._seals, self._clock, self._timeout_seconds)
            ready.set()
            await self._closing.wait()
