"""The kinds of calls of one server, over real connections: each kind has its own threads, bounds and turns."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context

import grpc
import pytest
from prometheus_client import CollectorRegistry

from deploy.local.waiting import wait_until
from fiatgate.rpc.v1.access_pb2 import Access
from fiatgate.status.v1 import status_pb2
from kit.base.actors import Actor, acting
from kit.base.clock import SystemClock
from kit.observe import metrics
from kit.rpc import client, status, turns
from kit.rpc.errors import Refused
from kit.rpc.server import Options, RpcServer
from kit.rpc.slots import Slots, Use, of_people
from kit.rpc.turns import Parts, Share, Turns
from tests.support.contracts import declare

declare("test.slots.Shop", {"Quick": Access(kind="quick"), "Slow": Access(kind="slow")})
QUICK = Slots(name="quick", threads=1, waiting=1)
SLOW = Slots(name="slow", threads=2, waiting=1)


class Shop:
    """A server whose slow calls wait until they are let go, and a channel to it. A request is its owner's name."""

    def __init__(self, server: RpcServer, channel: grpc.Channel) -> None:
        self._server = server
        self._threads = ThreadPoolExecutor(32)
        self._quick: Callable[..., bytes] = channel.unary_unary("/test.slots.Shop/Quick")
        self._slow: Callable[..., bytes] = channel.unary_unary("/test.slots.Shop/Slow")
        self.begun: list[str] = []
        self._let_go: dict[int, threading.Event] = {}
        self._is_closed = False

    def quick(self) -> bytes:
        return self._quick(b"quick")

    def slow(self, owner: str = "one", *, seconds: float = 600) -> Future[bytes]:
        return self._threads.submit(self._slow, owner.encode(), timeout=seconds)

    def fill(self, owner: str, *, waiting: int) -> None:
        """Calls of that owner wait for their turn, as many as may: one more is refused."""
        calls = [self.slow(owner) for _ in range(waiting + 1)]
        wait_until(lambda: any(each.done() for each in calls), "all but one to wait", timeout_seconds=15)

    def behave(self, request: bytes, _context: grpc.ServicerContext) -> bytes:
        number = len(self.begun)
        let_go = self._let_go[number] = threading.Event()
        self.begun.append(request.decode())
        if not self._is_closed:
            let_go.wait(600)
        return request

    def let_go(self, number: int) -> None:
        self._let_go[number].set()

    def use(self, kind: str) -> Use:
        return self._server.slots_use()[kind]

    def wait_for(self, **wanted: int) -> None:
        def is_so() -> bool:
            use = self.use("slow")
            return all(getattr(use, name) == number for name, number in wanted.items())

        wait_until(is_so, f"slow calls: {wanted}", timeout_seconds=15)

    def wait_for_turns(self, waiting: int) -> None:
        """Until so many calls stand in line: a call counts as waiting as soon as it arrives."""
        pool = self._server._pools.get("slow")
        assert pool is not None
        turns = pool._turns
        assert turns is not None

        def stand() -> int:
            return sum(line.count for line in list(turns._waiting.values()))

        wait_until(lambda: stand() == waiting, "calls in line", timeout_seconds=15)

    def close(self) -> None:
        self._is_closed = True
        for each in self._let_go.values():
            each.set()
        self._threads.shutdown(wait=True, cancel_futures=True)


@contextmanager
def shop_with(*kinds: Slots) -> Iterator[Shop]:
    server = RpcServer(Options(threads=1, slots=kinds, call_seconds=30))
    port = server.add_insecure_port("127.0.0.1:0")
    with client.channel(f"127.0.0.1:{port}", name="shop") as channel:
        shop = Shop(server, channel)
        methods: dict[str, grpc.RpcMethodHandler[bytes, bytes]] = {
            "Quick": grpc.unary_unary_rpc_method_handler(lambda request, _: request),
            "Slow": grpc.unary_unary_rpc_method_handler(shop.behave),
        }
        server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler("test.slots.Shop", methods)])
        status.add_to(server, _process(server))
        server.start()
        try:
            yield shop
        finally:
            shop.close()
            server.stop(5).wait(10)


def _process(server: RpcServer) -> status.Process:
    return status.Process(
        service="shop",
        version="1",
        started_at=SystemClock().now(),
        workers=[],
        database=lambda: None,
        nats=lambda: True,
        gauges=list,
        slots=server.slots_use,
    )


def owner_of(request: bytes) -> str:
    return request.decode().split("/")[0]


def parts_of(request: bytes) -> Parts:
    return tuple(request.decode().split("/")[1:])


def is_last(owner: str) -> bool:
    return owner == "last"


def of_owner(**share: float | None) -> Slots:
    """Slow calls with a share for each owner, and turns for its parts: `owner/network/session`."""
    return Slots(
        name="slow",
        threads=8,
        owner=owner_of,
        parts=parts_of,
        share=Share(**share, last=is_last),  # type: ignore[arg-type]
    )


def refused(call: Future[bytes]) -> str:
    with pytest.raises(Refused) as refusal:
        call.result(15)
    return refusal.value.reason


def counted(reason: str) -> float:
    labels = {"slots": "slow", "reason": reason}
    return metrics.REGISTRY.get_sample_value("fiatgate_rpc_slots_refused_total", labels) or 0


def test_a_kind_whose_threads_all_wait_delays_no_other_kind() -> None:
    with shop_with(QUICK, SLOW) as shop:
        for _ in range(3):
            shop.slow()
        shop.wait_for(working=2, waiting=1)
        assert shop.quick() == b"quick"


def test_a_call_beyond_the_bound_of_its_kind_is_refused_at_once_and_counted() -> None:
    with shop_with(QUICK, SLOW) as shop:
        kept = [shop.slow() for _ in range(3)]
        shop.wait_for(working=2, waiting=1)
        before = counted(turns.FULL)
        assert refused(shop.slow()) == "DB_UNAVAILABLE"
        assert not any(each.done() for each in kept), "it waited for none of them"
        assert counted(turns.FULL) == before + 1
        assert shop.use("slow") == Use(2, 1, 1)
        shop.let_go(0)
        shop.let_go(1)
        wait_until(lambda: len(shop.begun) == 3, "the third call to begin", timeout_seconds=15)
        shop.let_go(2)
        assert [each.result(15) for each in kept] == [b"one"] * 3
        shop.wait_for(working=0, waiting=0)


def test_a_call_that_gets_no_thread_takes_no_place() -> None:
    with shop_with(SLOW) as shop:
        pool = shop._server._pools.get("slow")
        assert pool is not None
        pool.shutdown()
        for _ in range(5):
            with pytest.raises(RuntimeError):
                pool.submit(shop.quick)
        assert shop.use("slow") == Use(0, 0, 0)


def test_calls_beyond_the_share_of_their_owner_are_refused_and_others_go_on() -> None:
    with shop_with(of_owner(working=2)) as shop:
        kept = [shop.slow("one"), shop.slow("one")]
        shop.wait_for(working=2)
        before = counted(turns.OWNER)
        with pytest.raises(Refused) as refusal:
            shop.slow("one").result(15)
        assert refusal.value.reason == "RATE_LIMITED"
        assert refusal.value.metadata == {"limit": "2", "retry_after_seconds": "5"}
        assert counted(turns.OWNER) == before + 1
        other = shop.slow("two")
        shop.wait_for(working=3)
        for number in range(3):
            shop.let_go(number)
        assert [each.result(15) for each in (*kept, other)] == [b"one", b"one", b"two"]


def test_owners_take_turns_however_many_calls_one_of_them_has() -> None:
    with shop_with(of_owner(working=1, waiting=3, wait_seconds=30, in_all=1)) as shop:
        shop.slow("one")
        shop.wait_for(working=1)
        for owner in ("one", "two"):
            shop.fill(owner, waiting=3)
        for number in range(7):
            wait_until(lambda n=number: len(shop.begun) > n, "the next turn", timeout_seconds=15)  # type: ignore[misc]
            shop.let_go(number)
        assert shop.begun == ["one", "one", "two", "one", "two", "one", "two"]


def test_the_calls_of_a_last_owner_begin_while_none_of_others_work_or_wait() -> None:
    with shop_with(of_owner(working=1, waiting=3, wait_seconds=30, in_all=2)) as shop:
        shop.slow("one")
        shop.wait_for(working=1)
        shop.slow("last")
        shop.wait_for_turns(1)
        shop.slow("one")
        shop.wait_for_turns(2)
        for number in range(2):
            wait_until(lambda n=number: len(shop.begun) > n, "the next turn", timeout_seconds=15)  # type: ignore[misc]
            shop.let_go(number)
        wait_until(lambda: shop.begun == ["one", "one", "last"], "the last turn", timeout_seconds=15)
        shop.slow("two")
        shop.wait_for(working=2)
        for number in (2, 3):
            shop.let_go(number)


def test_parts_of_an_owner_take_turns_and_the_fullest_loses_its_newest_call_to_another() -> None:
    with shop_with(of_owner(working=1, waiting=4, wait_seconds=30, in_all=1)) as shop:
        shop.slow("one/x/a")
        shop.wait_for(working=1)
        shop.fill("one/x/a", waiting=4)
        calls = [shop.slow("one/y/b")]
        shop.wait_for(working=1, waiting=4, refused=2)
        calls.append(shop.slow("one/x/c"))  # network x has more than y, and in it session a
        shop.wait_for(working=1, waiting=4, refused=3)
        assert refused(shop.slow("one/x/a")) == "RATE_LIMITED"
        for number, each in enumerate(("one/z/d", "one/w/e"), start=5):
            calls.append(shop.slow(each))
            shop.wait_for(working=1, waiting=4, refused=number)
        assert refused(shop.slow("one/v/f")) == "DB_UNAVAILABLE", "no network has more than one call"
        for number in range(5):
            wait_until(lambda n=number: len(shop.begun) > n, "the next turn", timeout_seconds=15)  # type: ignore[misc]
            shop.let_go(number)
        assert [each.result(15).decode() for each in calls] == ["one/y/b", "one/x/c", "one/z/d", "one/w/e"]
        assert shop.begun == ["one/x/a", "one/x/c", "one/y/b", "one/z/d", "one/w/e"]


def test_a_call_waits_for_its_turn_only_so_long() -> None:
    with shop_with(of_owner(working=1, waiting=1, wait_seconds=0.1, in_all=1)) as shop:
        shop.slow("one")
        shop.wait_for(working=1)
        assert refused(shop.slow("one")) == "RATE_LIMITED"
        assert refused(shop.slow("two")) == "DB_UNAVAILABLE"
        assert shop.begun == ["one"]


@pytest.mark.parametrize(
    ("author", "reason"),
    [
        (Actor(kind="person", name="ada@example.com"), "RATE_LIMITED"),
        (
            Actor(kind="process", name="invoices"),
            "DB_UNAVAILABLE",
        ),  # it calls for the customers of all merchants
    ],
)
def test_a_person_may_have_too_many_calls_and_a_process_may_not(author: Actor, reason: str) -> None:
    kind = of_people("services", working=1, waiting=1)
    assert kind.share is not None
    turns = Turns(kind.name, kind.share, threads=1)
    with ThreadPoolExecutor(1) as threads, acting(author):
        owner, parts = kind.owner(None), kind.parts(None)

        def wait() -> None:
            with turns.turn(owner, parts):
                pass

        with turns.turn(owner, parts):
            waiting = threads.submit(copy_context().run, wait)
            wait_until(lambda: bool(turns._waiting), "the second call to wait", timeout_seconds=15)
            with pytest.raises(Refused) as third, turns.turn(owner, parts):
                pass
        waiting.result(15)
    assert third.value.reason == reason


def test_a_call_whose_deadline_passed_while_it_waited_for_its_turn_is_not_begun() -> None:
    with shop_with(of_owner(working=1, waiting=1, wait_seconds=30, in_all=1)) as shop:
        kept = shop.slow("one")
        shop.wait_for(working=1)
        # The server gives up at the deadline as well, and its refusal may still arrive.
        assert refused(shop.slow("one", seconds=0.2)) in {"DB_UNAVAILABLE", "RATE_LIMITED"}
        shop.wait_for(working=1, waiting=0)
        shop.let_go(0)
        assert kept.result(15) == b"one"
        shop.wait_for(working=0, waiting=0)
        assert shop.begun == ["one"]


def test_status_and_metrics_show_the_calls_of_each_kind() -> None:
    with shop_with(QUICK, SLOW) as shop:
        for _ in range(3):
            shop.slow()
        shop.wait_for(working=2, waiting=1)
        assert refused(shop.slow()) == "DB_UNAVAILABLE"
        registry = CollectorRegistry()
        registry.register(status.StatusCollector(_process(shop._server)))
        for kind, working, waiting in (("slow", 2, 1), ("quick", 0, 0)):
            labels = {"service": "shop", "slots": kind}
            assert registry.get_sample_value("fiatgate_rpc_slots_working", labels) == working
            assert registry.get_sample_value("fiatgate_rpc_slots_waiting", labels) == waiting
        answer = status.StatusServicer(_process(shop._server)).GetStatus(
            status_pb2.GetStatusRequest(),
            None,  # type: ignore[arg-type]  # it asks its context for nothing
        )
        assert {each.name: each.value for each in answer.gauges} == {
            "calls_waiting_slow": 1,
            "calls_refused_slow": 1,
        }
