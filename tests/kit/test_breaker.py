"""A peer that hangs is waited for by few calls, and found again when it answers; over real connections on loopback.

The breaker's clock is moved by hand, so that no slow machine takes a peer that answers for one that hangs.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import grpc
import pytest
from structlog.testing import capture_logs

from deploy.local.waiting import wait_until
from kit.observe import metrics
from kit.rpc import breaker as breakers
from kit.rpc import client, deadline, errors
from kit.rpc.breaker import REST_SECONDS, Breaker
from kit.rpc.errors import Refused
from kit.rpc.server import Options, RpcServer

SECONDS = 60.0  # the limit of a call
WAITED_SECONDS = 0.9 * SECONDS
LABELS = {"peer": "peer", "calls": "orders"}


@dataclass
class Peer:
    """A service that hangs, refuses or answers. A call that hangs takes `WAITED_SECONDS` on the breaker's clock."""

    method: Callable[..., bytes]
    hangs: bool = True
    refuses: bool = False
    asked: list[bytes] = field(default_factory=list)
    goes_on: threading.Event = field(default_factory=threading.Event)  # calls that hang do so until then
    now_seconds: float = 1.0

    def behave(self, request: bytes, _context: grpc.ServicerContext) -> bytes:
        self.asked.append(request)
        if self.hangs:
            self.goes_on.wait(600)
            self.now_seconds += WAITED_SECONDS
        if self.hangs or self.refuses:
            raise errors.database_unavailable()
        return request


@pytest.fixture
def peer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Peer]:
    server = RpcServer(Options(threads=64))
    port = server.add_insecure_port("127.0.0.1:0")
    with client.channel(f"127.0.0.1:{port}", name="peer") as channel:
        made = Peer(channel.unary_unary("/test.Peer/Do"))
        made.goes_on.set()
        monkeypatch.setattr(breakers, "monotonic_seconds", lambda: made.now_seconds)
        methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Do": grpc.unary_unary_rpc_method_handler(made.behave)
        }
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Peer", methods)])
        server.start()
        yield made
        made.goes_on.set()
        server.stop(1).wait(5)


@pytest.fixture
def breaker(peer: Peer) -> Breaker:
    return Breaker("peer", calls="orders", seconds=SECONDS)


def reason(breaker: Breaker, peer: Peer) -> str:
    try:
        return breaker.call(peer.method, b"hello").decode()
    except Refused as refused:
        return refused.reason


def opened() -> float:
    return metrics.REGISTRY.get_sample_value("fiatgate_rpc_breaker_opened_total", LABELS) or 0


def test_after_the_first_wait_in_vain_calls_are_refused_unasked(peer: Peer, breaker: Breaker) -> None:
    before = opened()
    assert [reason(breaker, peer) for _ in range(100)] == ["DB_UNAVAILABLE"] * 100
    assert len(peer.asked) == 1
    assert opened() == before + 1


def test_while_a_peer_hangs_one_call_at_a_time_asks_it(peer: Peer, breaker: Breaker) -> None:
    assert reason(breaker, peer) == "DB_UNAVAILABLE"
    for asked in (2, 3):
        peer.now_seconds += REST_SECONDS
        peer.goes_on.clear()
        with ThreadPoolExecutor(1) as threads:
            asking = threads.submit(reason, breaker, peer)
            wait_until(lambda: len(peer.asked) == asked, "one call to ask", timeout_seconds=30)  # noqa: B023
            assert [reason(breaker, peer) for _ in range(20)] == ["DB_UNAVAILABLE"] * 20
            assert len(peer.asked) == asked
            peer.goes_on.set()
            assert asking.result(30) == "DB_UNAVAILABLE"


def test_a_peer_that_answers_again_is_asked_again(peer: Peer, breaker: Breaker) -> None:
    assert reason(breaker, peer) == "DB_UNAVAILABLE"
    peer.hangs = False
    assert reason(breaker, peer) == "DB_UNAVAILABLE", "it rests"
    peer.now_seconds += REST_SECONDS
    assert [reason(breaker, peer) for _ in range(5)] == ["hello"] * 5


def test_a_call_that_ends_with_its_callers_time_does_not_make_a_hanging_peer_a_good_one(
    peer: Peer, breaker: Breaker
) -> None:
    def has_asked_again() -> bool:
        peer.now_seconds += SECONDS
        with deadline.within(0.25):
            assert reason(breaker, peer) == "DB_UNAVAILABLE"
        return len(peer.asked) > 1

    with capture_logs() as lines:
        assert reason(breaker, peer) == "DB_UNAVAILABLE"
        peer.goes_on.clear()
        wait_until(has_asked_again, "the peer to be asked again", timeout_seconds=30)
    assert "peer_recovered" not in {line["event"] for line in lines}


def test_the_log_names_the_calls_and_how_long_one_waited(peer: Peer, breaker: Breaker) -> None:
    with capture_logs() as lines:
        assert reason(breaker, peer) == "DB_UNAVAILABLE"
    (line,) = [each for each in lines if each["event"] == "peer_hung"]
    assert (line["peer_service"], line["calls"]) == ("peer", "orders")
    assert line["waited_seconds"] == WAITED_SECONDS, "the wait, and not the limit"


def test_a_quick_refusal_opens_nothing(peer: Peer, breaker: Breaker) -> None:
    peer.hangs, peer.refuses = False, True
    assert [reason(breaker, peer) for _ in range(5)] == ["DB_UNAVAILABLE"] * 5
    assert len(peer.asked) == 5
