"""An asyncio loop in its own thread: it connects nats-py with services that use threads."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from kit.events.bus.messages import NATS_ERRORS, BusUnavailable, error_text
from kit.observe.log import get_logger

_log = get_logger()

T = TypeVar("T")

JOIN_SECONDS = 5.0


class LoopThread:
    """An asyncio loop in its own thread. Start it after forking: threads and loops do not survive a fork."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def running(self) -> bool:
        return self._loop is not None

    def start(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self._name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[..., Coroutine[Any, Any, T]], *args: Any, timeout_seconds: float) -> T:
        """Runs `function(*args)` on the loop and waits for it. NATS' errors and a timeout become `BusUnavailable`."""
        if self._loop is None:
            raise BusUnavailable("the bus is not running")
        future = asyncio.run_coroutine_threadsafe(function(*args), self._loop)
        try:
            return future.result(timeout_seconds)
        except NATS_ERRORS as error:
            future.cancel()
            raise BusUnavailable(error_text(error)) from error

    def post(self, function: Callable[..., object], *args: Any) -> None:
        """Calls `function(*args)` on the loop soon, without waiting. A coroutine runs on. After `stop`: nothing."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop was closed at this moment
                self._loop.call_soon_threadsafe(self._begin, function, *args)

    def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        """Runs `coroutine` in the background; call it on the loop's thread. A failure is logged."""
        task = asyncio.get_running_loop().create_task(
            coroutine, name=getattr(coroutine, "__qualname__", None)
        )
        self._tasks.add(task)
        task.add_done_callback(self._end)

    def stop(self) -> None:
        """Cancels running tasks and ends the thread. The loop cannot be used again."""
        loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        with suppress(*NATS_ERRORS):
            asyncio.run_coroutine_threadsafe(self._cancel_all(), loop).result(JOIN_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(JOIN_SECONDS)
        if not self._thread.is_alive():
            loop.close()

    def _begin(self, function: Callable[..., object], *args: Any) -> None:
        result = function(*args)
        if asyncio.iscoroutine(result):
            self.spawn(result)

    def _end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        failure = None if task.cancelled() else task.exception()
        if isinstance(failure, NATS_ERRORS):
            _log.warning("bus_step_failed", step=task.get_name(), error=error_text(failure))
        elif failure is not None:
            _log.error("bus_step_failed", step=task.get_name(), exc_info=failure)

    async def _cancel_all(self) -> None:
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
