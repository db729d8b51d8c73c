"""A peer that hangs is waited for by few calls, and found again when it answers; over real connections on loopback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import grpc
import pytest
from structlog.testing import capture_logs

from deploy.local.waiting import wait_until
from kit.base.clock import monotonic_seconds
from kit.observe import metrics
from kit.rpc import client, deadline, errors
from kit.rpc.breaker import REST_SECONDS, Breaker
from kit.rpc.errors import Refused
from kit.rpc.server import Options, RpcServer

SECONDS = 1.0
LABELS = {"peer": "peer", "calls": "orders"}


@dataclass
class Peer:
    """A service that hangs, refuses or answers."""

    method: Callable[..., bytes]
    asked: list[bytes] = field(default_factory=list)
    goes_on: threading.Event = field(default_factory=threading.Event)
    refuses: bool = False

    def behave(self, request: bytes, _context: grpc.ServicerContext) -> bytes:
        self.asked.append(request)
        self.goes_on.wait(30)
        if self.refuses:
            raise errors.database_unavailable()
        return request


@pytest.fixture
def peer() -> Iterator[Peer]:
    server = RpcServer(Options(threads=64))
    port = server.add_insecure_port("127.0.0.1:0")
    with client.channel(f"127.0.0.1:{port}", name="peer") as channel:
        made = Peer(channel.unary_unary("/test.Peer/Do"))
        methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Do": grpc.unary_unary_rpc_method_handler(made.behave)
        }
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.Peer", methods)])
        server.start()
        yield made
        made.goes_on.set()
        server.stop(1).wait(5)


def reason(breaker: Breaker, peer: Peer) -> str:
    try:
        return breaker.call(peer.method, b"hello").decode()
    except Refused as refused:
        return refused.reason


def opened() -> float:
    return metrics.REGISTRY.get_sample_value("fiatgate_rpc_breaker_opened_total", LABELS) or 0


def test_after_the_first_wait_in_vain_calls_are_refused_at_once(peer: Peer) -> None:
    breaker = Breaker("peer", calls="orders", seconds=SECONDS)
    before = opened()
    assert reason(breaker, peer) == "DB_UNAVAILABLE"
    started = monotonic_seconds()
    refused = 0
    while monotonic_seconds() < started + REST_SECONDS / 2:
        assert reason(breaker, peer) == "DB_UNAVAILABLE"
        refused += 1
    assert refused > 10, "each would have waited a second"
    assert len(peer.asked) == 1
    assert opened() == before + 1


def test_while_a_peer_hangs_one_call_at_a_time_asks_it(peer: Peer) -> None:
    breaker = Breaker("peer", calls="orders", seconds=SECONDS)
    ends = monotonic_seconds() + 3 * (SECONDS + REST_SECONDS)

    def keep_asking() -> None:
        while monotonic_seconds() < ends:
            assert reason(breaker, peer) == "DB_UNAVAILABLE"
            threading.Event().wait(0.01)

    with ThreadPoolExecutor(4) as threads:
        for each in [threads.submit(keep_asking) for _ in range(4)]:
            each.result()
    assert len(peer.asked) <= 4 + 4, "four at first, then one in each second and a half or more"


def test_a_peer_that_answers_again_is_asked_again(peer: Peer) -> None:
    breaker = Breaker("peer", calls="orders", seconds=SECONDS)
    assert reason(breaker, peer) == "DB_UNAVAILABLE"
    peer.goes_on.set()
    wait_until(lambda: reason(breaker, peer) == "hello", "the peer to be asked again", timeout_seconds=15)
    assert [reason(breaker, peer) for _ in range(5)] == ["hello"] * 5


def test_a_call_that_ends_with_its_callers_time_does_not_make_a_hanging_peer_a_good_one(peer: Peer) -> None:
    breaker = Breaker("peer", calls="orders", seconds=SECONDS)

    def has_asked_again() -> bool:
        with deadline.within(SECONDS / 4):
            assert reason(breaker, peer) == "DB_UNAVAILABLE"
        return len(peer.asked) > 1

    with capture_logs() as lines:
        assert reason(breaker, peer) == "DB_UNAVAILABLE"
        wait_until(has_asked_again, "the peer to be asked again", timeout_seconds=15)
    assert "peer_recovered" not in {line["event"] for line in lines}


def test_the_log_names_the_calls_and_how_long_one_waited(peer: Peer) -> None:
    breaker = Breaker("peer", calls="orders", seconds=2 * SECONDS)
    with capture_logs() as lines, deadline.within(1.5 * SECONDS):
        assert reason(breaker, peer) == "DB_UNAVAILABLE"
    (line,) = [each for each in lines if each["event"] == "peer_hung"]
    assert (line["peer_service"], line["calls"]) == ("peer", "orders")
    assert line["waited_seconds"] > SECONDS
    assert line["waited_seconds"] != 2 * SECONDS, "the limit, and not the wait"


def test_a_quick_refusal_opens_nothing(peer: Peer) -> None:
    peer.refuses = True
    peer.goes_on.set()
    breaker = Breaker("peer", calls="orders", seconds=SECONDS)
    assert [reason(breaker, peer) for _ in range(5)] == ["DB_UNAVAILABLE"] * 5
    assert len(peer.asked) == 5
