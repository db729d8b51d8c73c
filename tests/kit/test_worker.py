"""kit.work.worker: loops that outlive their mistakes, and stops that nobody sleeps through."""

import threading
from collections.abc import Callable

import pytest

from kit.work.worker import (
    Fatal,
    Loop,
    Outage,
    Pulse,
    Signal,
    Stop,
    Worker,
    WorkerDied,
    WorkerHealth,
    run_all,
)
from tests.support.clock import START, ManualClock


def _run(worker: Worker, stop: Stop) -> threading.Thread:
    thread = threading.Thread(target=worker.run, args=(stop,), daemon=True)
    thread.start()
    return thread


def test_a_signal_rung_before_the_wait_is_not_lost_and_is_heard_once() -> None:
    signal = Signal()
    signal.set()
    signal.set()
    assert signal.wait(0)
    assert not signal.wait(0)


def test_a_loop_runs_at_once_when_its_signal_rings() -> None:
    ran, signal, stop = threading.Semaphore(0), Signal(), Stop()

    def step() -> bool:
        ran.release()
        return False

    thread = _run(Loop("rung", step, every_seconds=3600, signal=signal), stop)
    assert ran.acquire(timeout=5)
    signal.set()
    assert ran.acquire(timeout=5)
    stop.set()
    thread.join(5)
    assert not thread.is_alive()


def test_a_step_that_says_there_is_more_is_repeated_without_waiting() -> None:
    answers = iter([True, True, False])
    done, stop = threading.Event(), Stop()

    def step() -> bool:
        more = next(answers)
        if not more:
            done.set()
        return more

    thread = _run(Loop("busy", step, every_seconds=3600), stop)
    assert done.wait(5)
    stop.set()
    thread.join(5)


@pytest.mark.parametrize("error", [ValueError("a bug"), Outage("away")])
def test_a_loop_outlives_a_step_that_raises_and_tells_of_it(error: Exception) -> None:
    failures = [error, error]
    healed, stop = threading.Event(), Stop()

    def step() -> bool:
        if failures:
            raise failures.pop()
        healed.set()
        return False

    clock = ManualClock()
    loop = Loop("hurt", step, every_seconds=3600, clock=clock)
    assert loop.health() == WorkerHealth("hurt", healthy=True, last_run_at=None)
    thread = _run(loop, stop)
    assert healed.wait(5)
    stop.set()
    thread.join(5)
    assert loop.health() == WorkerHealth("hurt", healthy=True, last_run_at=START)


@pytest.mark.parametrize("required", [True, False])
def test_a_loop_whose_steps_only_fail_says_why_and_is_unhealthy_if_the_process_needs_it(
    required: bool,
) -> None:
    tried, stop = threading.Semaphore(0), Stop()

    def step() -> bool:
        tried.release()
        raise ValueError("the reason")

    loop = Loop("ill", step, every_seconds=1, stale_after_seconds=0.05, required=required)
    thread = _run(loop, stop)
    for _ in range(3):  # the pauses between them are longer than 0.05 s
        assert tried.acquire(timeout=5)
    health = loop.health()
    assert health.healthy is not required
    assert health.detail == "ValueError: the reason"
    stop.set()
    thread.join(5)


@pytest.mark.parametrize(("outages_count", "healthy"), [(False, True), (True, False)])
def test_an_outage_is_an_illness_only_of_those_who_say_so(
    outages_count: bool, healthy: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_seconds = [0.0]
    monkeypatch.setattr("kit.work.worker.monotonic_seconds", lambda: now_seconds[0])
    pulse = Pulse("one", stale_after_seconds=60, outages_count=outages_count)
    now_seconds[0] = 61.0
    assert not pulse.health().healthy
    pulse.trouble(Outage("nobody there"))
    assert pulse.health().healthy is healthy
    pulse.beat()
    assert pulse.health().healthy


def test_run_all_ends_when_it_is_told_to() -> None:
    stop = Stop()
    threading.Timer(0.05, stop.set).start()
    run_all([Loop("idle", lambda: False, every_seconds=3600)], stop, grace_seconds=10)
    assert stop.is_set()


def test_run_all_without_workers_waits_for_the_stop() -> None:
    stop = Stop()
    threading.Timer(0.05, stop.set).start()
    run_all([], stop, grace_seconds=10)
    assert stop.is_set()


class Ending:
    """A worker that ends by itself."""

    name = "ending"

    def __init__(self, how: Callable[[], object]) -> None:
        self._how = how

    def run(self, stop: Stop) -> None:
        self._how()

    def health(self) -> WorkerHealth:
        return WorkerHealth(self.name, healthy=True, last_run_at=None)


def _raise_fatal() -> bool:
    raise Fatal("beyond repair")


@pytest.mark.parametrize(
    "dying",
    [
        Ending(lambda: None),
        Ending(_raise_fatal),
        Loop("ending", _raise_fatal, every_seconds=1),
    ],
    ids=["returns", "raises", "loop with a fatal step"],
)
def test_a_worker_that_ends_by_itself_takes_the_others_and_the_process_along(dying: Worker) -> None:
    stop = Stop()
    with pytest.raises(WorkerDied, match="ending"):
        run_all([Loop("innocent", lambda: False, every_seconds=3600), dying], stop, grace_seconds=10)
    assert stop.is_set()
