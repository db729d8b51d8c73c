"""kit.events.bus: how many servers keep the stream, and what is told when there are too few of them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from deploy.local.waiting import wait_until
from kit.base.ids import new_id
from kit.events.bus.connection import Bus
from kit.events.bus.messages import Outgoing
from kit.events.bus.stream import OwnStream
from tests.support.servers import NatsServer


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    """A server of its own, without a stream and without a cluster."""
    server = NatsServer(tmp_path / "nats")
    server.start()
    yield server
    server.stop()


@pytest.fixture
def start() -> Iterator[Callable[..., Bus]]:
    made: list[Bus] = []

    def begin(url: str, *, replicas: int) -> Bus:
        bus = Bus(url, name="tests", stream=OwnStream(replicas=replicas))
        made.append(bus)
        bus.start()
        return bus

    yield begin
    for bus in made:
        bus.close()


def test_one_server_refuses_three_replicas_and_the_log_says_what_to_mend(
    server: NatsServer, start: Callable[..., Bus]
) -> None:
    with capture_logs() as lines:
        bus = start(server.url, replicas=3)
        wait_until(
            lambda: any(line["log_level"] == "error" for line in lines), "the error", timeout_seconds=10
        )
    assert not bus.wait_ready(0)
    (told,) = [line for line in lines if line["log_level"] == "error"]
    assert (told["event"], told["replicas"]) == ("stream_replicas_refused", 3)
    assert "non-clustered" in told["error"]
    assert "FIATGATE_NATS_REPLICAS" in told["mend"]


def test_a_stream_that_is_there_goes_on_when_it_can_have_no_more_replicas(
    server: NatsServer, start: Callable[..., Bus]
) -> None:
    assert start(server.url, replicas=1).wait_ready(10)
    with capture_logs() as lines:
        bus = start(server.url, replicas=3)
        wait_until(
            lambda: any(line["log_level"] == "error" for line in lines), "the error", timeout_seconds=10
        )
    assert bus.wait_ready(10)
    fact = Outgoing(new_id(), "fiatgate.test.replicas", b"")
    assert bus.publish([fact]) == [fact.event_id]
    assert bus.stream_seen is not None
