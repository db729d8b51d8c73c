"""A peer that hangs is waited for by few calls, and found again when it answers; over real connections on loopback."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import grpc
import pytest

from deploy.local.waiting import wait_until
from kit import errors, metrics
from kit.clock import monotonic_seconds
from kit.errors import Refused
from kit.rpc import client
from kit.rpc.breaker import REST_SECONDS, Breaker
from kit.rpc.server import Options, RpcServer

SECONDS = 1.0


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
    return metrics.REGISTRY.get_sample_value("fiatgate_rpc_breaker_opened_total", {"peer": "peer"}) or 0


def test_after_the_first_wait_in_vain_calls_are_refused_at_once(peer: Peer) -> None:
    breaker = Breaker("peer", seconds=SECONDS)
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
    breaker = Breaker("peer", seconds=SECONDS)
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
    breaker = Breaker("peer", seconds=SECONDS)
    assert reason(breaker, peer) == "DB_UNAVAILABLE"
    peer.goes_on.set()
    wait_until(lambda: reason(breaker, peer) == "hello", "the peer to be asked again", timeout_seconds=15)
    assert [reason(breaker, peer) for _ in range(5)] == ["hello"] * 5


def test_a_quick_refusal_opens_nothing(peer: Peer) -> None:
    peer.refuses = True
    peer.goes_on.set()
    breaker = Breaker("peer", seconds=SECONDS)
    assert [reason(breaker, peer) for _ in range(5)] == ["DB_UNAVAILABLE"] * 5
    assert len(peer.asked) == 5
