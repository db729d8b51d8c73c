"""kit.events.bus: no background task ends without a line in the log, and a bus without signs of life ends its
process.
"""

import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from deploy.local.waiting import wait_until
from kit.base.ids import new_id
from kit.events.bus import connection
from kit.events.bus.connection import Bus
from kit.events.bus.messages import BusClosed, Outgoing
from kit.work.worker import Stop
from tests.support.servers import NatsServer


@pytest.fixture
def quick(make_bus: Callable[[str], Bus], nats_url: str, monkeypatch: pytest.MonkeyPatch) -> Bus:
    """A bus that checks its connection twenty times a second."""
    monkeypatch.setattr(connection, "CHECK_SECONDS", 0.05)
    bus = make_bus(nats_url)
    assert bus.wait_ready(10)
    return bus


def _ended(bus: Bus) -> list[BaseException]:
    """The thread that watches the bus, as a process runs it; what it ended with."""
    ended: list[BaseException] = []

    def watch() -> None:
        try:
            bus.run(Stop())
        except BusClosed as error:
            ended.append(error)

    threading.Thread(target=watch, daemon=True).start()
    return ended


def test_a_step_that_fails_is_logged_with_its_name(bus: Bus) -> None:
    async def broken() -> None:
        raise ValueError("a bug")

    with capture_logs() as lines:
        bus._loop.post(broken)
        wait_until(lambda: bool(lines), "the log line", timeout_seconds=5)
    assert lines[0]["event"] == "bus_step_failed"
    assert "broken" in lines[0]["step"]
    assert isinstance(lines[0]["exc_info"], ValueError)


def test_a_check_that_runs_into_a_bug_is_logged_and_made_again(
    quick: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stream is looked after for ever, whatever one look runs into."""
    looks: list[int] = []
    real = quick._check_stream

    async def broken_once() -> None:
        looks.append(1)
        if len(looks) == 1:
            raise ValueError("a bug")
        await real()

    monkeypatch.setattr(quick, "_check_stream", broken_once)
    with capture_logs() as lines:
        wait_until(lambda: len(looks) > 1, "another look", timeout_seconds=10)
    assert "bus_check_failed" in {line["event"] for line in lines}


def test_a_listener_that_could_not_be_subscribed_is_subscribed_later(
    quick: Bus, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., Any] = quick._client.subscribe
    tries: list[str] = []

    async def fails_once(subject: str, **options: Any) -> object:
        tries.append(subject)
        if len(tries) == 1:
            raise TimeoutError
        return await real(subject, **options)

    monkeypatch.setattr(quick._client, "subscribe", fails_once)
    heard = threading.Event()
    quick.on_hint("fiatgate-hint.second-try", lambda _subject, _data: heard.set())

    def heard_after_telling() -> bool:
        quick.hint("fiatgate-hint.second-try")
        return heard.is_set()

    wait_until(heard_after_telling, "the hint", timeout_seconds=15)


def test_a_client_that_stopped_reconnecting_ends_the_process(
    make_bus: Callable[[str], Bus], nats_server: NatsServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nats-py's own task is gone and says nothing; to be away for long is no reason to end."""
    bus = make_bus(nats_server.url)
    assert bus.wait_ready(10)
    monkeypatch.setattr(connection, "SILENT_SECONDS", 7)
    ended = _ended(bus)
    nats_server.stop()
    try:
        wait_until(lambda: not bus.connected, "the connection to be lost", timeout_seconds=10)
        with pytest.raises(TimeoutError):
            wait_until(lambda: bool(ended), "an end", timeout_seconds=9)

        async def end_reconnecting() -> None:
            task = bus._client._reconnection_task
            assert task is not None
            task.cancel()

        bus._loop.call(end_reconnecting, timeout_seconds=5)
        wait_until(lambda: bool(ended), "the end", timeout_seconds=60)
        assert "no sign of life" in str(ended[0])
    finally:
        nats_server.start()


def test_a_server_that_pauses_longer_than_a_check_is_waited_for(quick: Bus, nats_server: NatsServer) -> None:
    """nats-py stops reading when it gets the answer to a ping that was given up: so none is given up."""
    ended = _ended(quick)
    before = quick._client.stats["reconnects"]
    with nats_server.paused(), pytest.raises(TimeoutError):
        wait_until(lambda: bool(ended), "an end", timeout_seconds=2)
    fact = Outgoing(new_id(), "fiatgate.test.paused", b"")
    wait_until(lambda: quick.publish([fact]) == [fact.event_id], "the publication", timeout_seconds=10)
    assert quick._client.stats["reconnects"] == before
    assert not ended


def test_what_nats_may_refuse_is_counted_from_the_start() -> None:
    """A series that begins at 1 has not grown, for Prometheus: no alert would see the first refusal."""
    shows = "from kit.events.bus.messages import REFUSED; print([each.samples for each in REFUSED.collect()])"
    shown = subprocess.run(
        [sys.executable, "-c", shows], capture_output=True, text=True, check=True, timeout=60
    )
    assert "'password'" in shown.stdout and "'right'" in shown.stdout
