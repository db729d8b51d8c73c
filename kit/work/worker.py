"""Threads that work until they are stopped, and report their health.

A worker that stops silently is an outage without an alarm. So a `Loop` survives every exception of its step, each
worker reports its health, and a worker that ends by itself ends the process, so that the supervisor starts a fresh one.
"""

import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol

from kit.base.clock import Clock, SystemClock, monotonic_seconds
from kit.observe.log import get_logger

_log = get_logger()

FIRST_BACKOFF_SECONDS = 0.1
LAST_BACKOFF_SECONDS = 3.0
SIGNAL_CHECK_SECONDS = 0.5
# Loops that start together would otherwise stay together, and each would need a connection of its own for ever.
_PACES = (0.9, 1.1)


class Outage(Exception):
    """A part outside the process is away and will come back: the worker waits, logs one line, and counts no failure."""


class Fatal(Exception):
    """An error that the process cannot repair by itself: `Loop` raises it, the process ends, the supervisor
    restarts it.
    """


class WorkerDied(Exception):
    """A worker ended before the stop."""


class Signal:
    """A bell for one waiting thread. A ring before the wait is not lost; many rings count as one."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def set(self) -> None:
        self._event.set()

    def wait(self, timeout_seconds: float) -> bool:
        """Waits until the bell rings or the time is over; returns whether it rang. Clears it."""
        rang = self._event.wait(timeout_seconds)
        self._event.clear()
        return rang


class Stop(threading.Event):
    """The request to end. It also wakes the workers that wait for something else."""

    def __init__(self) -> None:
        super().__init__()
        self._callbacks: list[Callable[[], None]] = []
        self._callbacks_lock = threading.Lock()

    def on_set(self, callback: Callable[[], None]) -> None:
        """Calls `callback` when the stop comes, at once if it has come already. Use a quick one, such as a
        signal's `set`.
        """
        with self._callbacks_lock:
            self._callbacks.append(callback)
        if self.is_set():
            callback()

    def set(self) -> None:
        super().set()
        with self._callbacks_lock:
            callbacks = list(self._callbacks)
        for callback in callbacks:
            callback()


@dataclass(frozen=True)
class WorkerHealth:
    """The health of one worker: `last_run_at` is its last step that ended well, None before the first.

    While one is not healthy, the process is not ready (`kit.process.main`).
    """

    name: str
    healthy: bool
    last_run_at: datetime | None
    detail: str = ""


class Worker(Protocol):
    """A part of the process that runs in its own thread until `stop` is set."""

    @property
    def name(self) -> str: ...

    def run(self, stop: Stop) -> None: ...

    def health(self) -> WorkerHealth: ...


class Pulse:
    """The health of a worker: when a step last ended well, and the last trouble.

    It is not healthy when no step ended well for `stale_after_seconds`. Waiting for the end of an `Outage` counts as
    healthy, because the status reports the outage itself and readiness must not fall with it. With `outages_count` it
    does not: for a worker that is useless while it waits.
    """

    def __init__(
        self,
        name: str,
        *,
        stale_after_seconds: float,
        outages_count: bool = False,
        clock: Clock | None = None,
    ) -> None:
        self._name = name
        self._stale_after_seconds = stale_after_seconds
        self._outages_count = outages_count
        self._clock = clock or SystemClock()
        self._last_run_at: datetime | None = None
        self._last_beat_seconds = monotonic_seconds()
        self._trouble = ""

    def beat(self) -> None:
        self._last_run_at = self._clock.now()
        self._last_beat_seconds = monotonic_seconds()
        self._trouble = ""

    def trouble(self, error: BaseException) -> None:
        self._trouble = f"{type(error).__name__}: {error}"[:200]
        if isinstance(error, Outage) and not self._outages_count:
            self._last_beat_seconds = monotonic_seconds()

    def health(self) -> WorkerHealth:
        silent_seconds = monotonic_seconds() - self._last_beat_seconds
        healthy = silent_seconds < self._stale_after_seconds
        detail = self._trouble or ("" if healthy else f"nothing done for {silent_seconds:.0f} s")
        return WorkerHealth(self._name, healthy, self._last_run_at, detail)


class Backoff:
    """Waiting times that double from 0.1 s to 3 s until a step succeeds."""

    def __init__(self) -> None:
        self._next_seconds = FIRST_BACKOFF_SECONDS

    def reset(self) -> None:
        self._next_seconds = FIRST_BACKOFF_SECONDS

    def next_seconds(self) -> float:
        seconds = self._next_seconds
        self._next_seconds = min(seconds * 2, LAST_BACKOFF_SECONDS)
        return seconds


class Loop:
    """Repeats `step` every `every_seconds`, give or take a tenth; at once when `signal` rings or the step returns true.

    A step that raises is logged and repeated after a growing pause; only `Fatal` ends the loop. A loop that is not
    `required` is always healthy: the process does its work without it.
    """

    def __init__(
        self,
        name: str,
        step: Callable[[], bool],
        *,
        every_seconds: float,
        signal: Signal | None = None,
        stale_after_seconds: float | None = None,
        required: bool = True,
        clock: Clock | None = None,
    ) -> None:
        self.name = name
        self._required = required
        self._step = step
        self._every_seconds = every_seconds
        self._signal = signal or Signal()
        self._pulse = Pulse(
            name, stale_after_seconds=stale_after_seconds or max(60.0, 3 * every_seconds), clock=clock
        )

    def run(self, stop: Stop) -> None:
        stop.on_set(self._signal.set)
        backoff = Backoff()
        while not stop.is_set():
            try:
                more = self._step()
            except Fatal:
                raise
            except Exception as error:  # noqa: BLE001 - a loop must survive every error of its step
                self._pulse.trouble(error)
                log_failure(self.name, error)
                stop.wait(backoff.next_seconds())
                continue
            self._pulse.beat()
            backoff.reset()
            if not more:
                self._signal.wait(self._every_seconds * random.uniform(*_PACES))  # noqa: S311

    def health(self) -> WorkerHealth:
        health = self._pulse.health()
        return health if self._required else replace(health, healthy=True)


def log_failure(worker: str, error: Exception) -> None:
    """Logs one line for an outage, the traceback for every other error."""
    if isinstance(error, Outage):
        _log.warning("worker_blocked", worker=worker, error=str(error))
    else:
        _log.error("worker_step_failed", worker=worker, exc_info=error)


def run_all(workers: Sequence[Worker], stop: Stop, *, grace_seconds: float) -> None:
    """Runs each worker in a thread until `stop`; returns when all ended, or `grace_seconds` after the stop.

    Blocks even without workers. Raises `WorkerDied` when one ended by itself: the process should exit non-zero.
    """
    died: list[tuple[str, BaseException | None]] = []

    def work(worker: Worker) -> None:
        failure: BaseException | None = None
        try:
            worker.run(stop)
        except BaseException as error:  # noqa: BLE001 - the process must end with whatever error ended the thread
            failure = error
        if failure is not None or not stop.is_set():
            died.append((worker.name, failure))
            stop.set()

    threads = [
        threading.Thread(target=work, args=(worker,), name=worker.name, daemon=True) for worker in workers
    ]
    for thread in threads:
        thread.start()
    # In slices: a signal that the kernel gives to another thread, or that comes just before the main thread sleeps,
    # does not wake it, and Python runs handlers only there. Seen once: a process slept through its SIGTERM.
    while not stop.wait(SIGNAL_CHECK_SECONDS):
        pass
    give_up_at_seconds = monotonic_seconds() + grace_seconds
    for thread in threads:
        thread.join(max(0.0, give_up_at_seconds - monotonic_seconds()))
        if thread.is_alive():
            _log.warning("worker_abandoned", worker=thread.name, grace_seconds=grace_seconds)
    if died:
        name, failure = died[0]
        raise WorkerDied(f"worker {name} ended by itself") from failure
