"""The limit of requests per key: the counting, what workers tell each other, and the headers over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import requests
from structlog.testing import capture_logs

from deploy.local.waiting import wait_until
from gateway.access import limits
from gateway.access.hints import Hints
from gateway.access.limits import KEYS_PER_HINT, WINDOW_SECONDS, RateLimit, shared
from kit.events.bus.messages import HINT_MOST_BYTES
from kit.work import tasks
from tests.gateway.desk import Desk, Shop, code_of
from tests.gateway.process import gateway_process
from tests.kit.consuming import counted
from tests.support.clock import ManualClock
from tests.support.servers import NatsServer
from tests.support.stack import Stack

PATH = "/api/v1/invoices"

# -- the counting


@pytest.fixture
def clock() -> ManualClock:
    """At the beginning of a minute."""
    return ManualClock()


def test_the_limit_is_granted_and_no_more(clock: ManualClock) -> None:
    limit = RateLimit(3, clock=clock)
    taken = [limit.take("a") for _ in range(5)]
    assert [each.granted for each in taken] == [True, True, True, False, False]
    assert [each.remaining for each in taken] == [2, 1, 0, 0, 0]


def test_each_key_has_its_own(clock: ManualClock) -> None:
    limit = RateLimit(1, clock=clock)
    assert limit.take("a").granted
    assert not limit.take("a").granted
    assert limit.take("b").granted


def test_the_next_minute_begins_anew(clock: ManualClock) -> None:
    limit = RateLimit(1, clock=clock)
    clock.advance(seconds=WINDOW_SECONDS - 1)
    assert limit.take("a").reset_seconds == 1
    assert not limit.take("a").granted
    clock.advance(seconds=1)
    fresh = limit.take("a")
    assert (fresh.granted, fresh.reset_seconds) == (True, WINDOW_SECONDS)


def test_the_headers_are_those_of_the_draft(clock: ManualClock) -> None:
    limit = RateLimit(100, clock=clock)
    clock.advance(seconds=18)
    assert limit.take("a").headers() == {
        "RateLimit-Policy": '"key";q=100;w=60',
        "RateLimit": '"key";r=99;t=42',
    }


# -- what workers tell each other


def tell(teller: RateLimit, *learners: RateLimit, everything: bool = False) -> None:
    for data in teller.news(everything=everything):
        for learner in learners:
            learner.learn(data)


def test_what_one_worker_took_is_gone_for_the_other(clock: ManualClock) -> None:
    here, there = RateLimit(10, clock=clock), RateLimit(10, clock=clock)
    for _ in range(7):
        here.take("a")
    tell(here, there)
    assert [there.take("a").granted for _ in range(4)] == [True, True, True, False]
    tell(there, here)
    assert not here.take("a").granted


def test_hints_that_get_lost_or_come_twice_or_late_change_nothing(clock: ManualClock) -> None:
    here, there = RateLimit(10, clock=clock), RateLimit(10, clock=clock)
    here.take("a")
    lost = list(here.news())
    here.take("a")
    for data in [*here.news(), *lost, *lost]:
        there.learn(data)
    assert there.take("a").remaining == 10 - 2 - 1


def test_a_worker_does_not_learn_from_itself(clock: ManualClock) -> None:
    limit = RateLimit(10, clock=clock)
    limit.take("a")
    tell(limit, limit)
    assert limit.take("a").remaining == 8


def test_only_what_changed_is_told_unless_everything_is_asked_for(clock: ManualClock) -> None:
    limit = RateLimit(10, clock=clock)
    limit.take("a")
    assert [json.loads(data)["counts"] for data in limit.news()] == [{"a": 1}]
    assert list(limit.news()) == []
    assert [json.loads(data)["counts"] for data in limit.news(everything=True)] == [{"a": 1}]


def test_many_keys_are_told_in_pieces_that_are_not_too_large(clock: ManualClock) -> None:
    here, there = RateLimit(10, clock=clock), RateLimit(10, clock=clock)
    for number in range(KEYS_PER_HINT + 1):
        here.take(_key(number))
    pieces = list(here.news())
    assert len(pieces) == 2
    for piece in pieces:
        assert len(piece) < HINT_MOST_BYTES
        there.learn(piece)
    assert there.take(_key(0)).remaining == there.take(_key(KEYS_PER_HINT)).remaining == 8


def _key(number: int) -> str:
    return f"{number:064}"  # the longest name


def test_counts_of_another_minute_are_ignored(clock: ManualClock) -> None:
    late = ManualClock()
    here, there = RateLimit(10, clock=late), RateLimit(10, clock=clock)
    here.take("a")
    clock.advance(minutes=1)
    tell(here, there)
    assert there.take("a").remaining == 9


def news(window: int, counts: object, worker: object = "forger") -> bytes:
    return json.dumps({"worker": worker, "window": window, "counts": counts}).encode()


NOW = int(ManualClock().now().timestamp()) // WINDOW_SECONDS


@pytest.mark.parametrize(
    "data",
    [
        b"", b"\xff", b"(" * 10_000, b"[]", b"{}",
        news(NOW, {"a": "9"}), news(NOW, {"a": 9.5}), news(NOW, {"a": -9}), news(NOW, {"a": None}), news(NOW, ["a"]),
        news(NOW, {"a": 9}, worker=7), news(NOW, {"a": 9}, worker="w" * 65), news(NOW, {"k" * 65: 9, "a": 9}),
    ],
)  # fmt: skip
def test_a_hint_that_no_gateway_would_send_changes_nothing(clock: ManualClock, data: bytes) -> None:
    limit = RateLimit(10, clock=clock)
    limit.learn(data)
    assert limit.take("a").remaining == 9


def test_a_forged_count_ends_with_its_minute(clock: ManualClock) -> None:
    limit = RateLimit(10, clock=clock)
    limit.learn(news(NOW, {"a": 10**30}))
    limit.learn(news(NOW + 1, {"b": 10}))
    assert not limit.take("a").granted
    assert limit.take("b").remaining == 9, "no minute is taken before it begins"
    clock.advance(minutes=1)
    assert limit.take("a").remaining == 9


def test_a_flood_of_forged_hints_does_not_fill_the_memory(
    clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WORKERS_MAX", 3)
    monkeypatch.setattr(limits, "LEARNED_MAX", 10)
    limit = RateLimit(10, clock=clock)
    for worker in range(5):
        limit.learn(news(NOW, {f"key-{worker}-{number}": 1 for number in range(8)}, worker=f"w{worker}"))
    assert len(limit._others) == 3
    assert sum(len(counts) for counts in limit._others.values()) == 10


def test_workers_share_the_limit_over_nats_and_go_on_without_it(nats_server: NatsServer) -> None:
    async def story() -> None:
        clock = ManualClock()
        here, there = RateLimit(10, clock=clock), RateLimit(10, clock=clock)
        async with (
            Hints(nats_server.url, name="here") as hints_here,
            Hints(nats_server.url, name="there") as hints_there,
            shared(here, hints_here),
            shared(there, hints_there),
        ):
            await _until(lambda: hints_here.connected and hints_there.connected)
            here.take("a")
            await _until(lambda: there._foreign == {"a": 1})
            nats_server.kill()
            await _until(lambda: not hints_here.connected)
            assert here.take("a").remaining == 8
            nats_server.start()
            await _until(lambda: there._foreign == {"a": 2})

    asyncio.run(story())


def test_a_listener_that_has_stopped_hears_no_more(nats_server: NatsServer) -> None:
    async def story() -> None:
        subject, left, stays = "fiatgate-hint.x", list[bytes](), list[bytes]()
        async with Hints(nats_server.url, name="one") as hints:
            stop = hints.on_hint(subject, lambda _, data: left.append(data))
            hints.on_hint("fiatgate-hint.*", lambda _, data: stays.append(data))
            await _until(lambda: hints.connected)
            await hints.hint(subject, b"1")
            await _until(lambda: (left, stays) == ([b"1"], [b"1"]))
            stop()
            await _until(lambda: not hints._tasks)
            await hints.hint(subject, b"2")
            await _until(lambda: stays == [b"1", b"2"])
            assert left == [b"1"]

    asyncio.run(story())


def test_a_listener_that_fails_ends_neither_the_others_nor_itself(nats_server: NatsServer) -> None:
    async def story() -> None:
        subject, failed, heard = "fiatgate-hint.x", list[bytes](), list[bytes]()

        def fails(_: str, data: bytes) -> None:
            failed.append(data)
            raise ValueError("a mistake")

        async with Hints(nats_server.url, name="one") as hints:
            hints.on_hint(subject, fails)
            hints.on_hint(subject, lambda _, data: heard.append(data))
            await _until(lambda: hints.connected)
            for data in (b"1", b"2"):
                await hints.hint(subject, data)
            await _until(lambda: (failed, heard) == ([b"1", b"2"], [b"1", b"2"]))

    with capture_logs() as logs:
        asyncio.run(story())
    assert [line["subject"] for line in logs if line["event"] == "hint_failed"] == ["fiatgate-hint.x"] * 2


def test_a_hint_larger_than_those_of_our_processes_is_dropped_unread_and_counted(
    nats_server: NatsServer,
) -> None:
    async def story() -> None:
        subject, heard = "fiatgate-hint.x", list[int]()
        async with Hints(nats_server.url, name="one") as hints:
            hints.on_hint(subject, lambda _, data: heard.append(len(data)))
            await _until(lambda: hints.connected)
            for size in (1 << 20, HINT_MOST_BYTES + 1, HINT_MOST_BYTES):
                await hints.hint(subject, b"x" * size)
            await _until(lambda: HINT_MOST_BYTES in heard)
        assert heard == [HINT_MOST_BYTES]

    before = counted("nats_hints_dropped_total")
    asyncio.run(story())
    assert counted("nats_hints_dropped_total") == before + 2


def test_a_teller_that_fails_is_begun_again(
    nats_server: NatsServer, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, its end was noticed by nobody: from then on each worker granted the whole limit."""
    monkeypatch.setattr(tasks, "RESTART_SECONDS", 0.05)

    async def story() -> None:
        here, there = RateLimit(10, clock=clock), RateLimit(10, clock=clock)
        news, failures = here.news, [RuntimeError("a mistake")]

        def news_that_fails_once(*, everything: bool = False) -> Iterator[bytes]:
            if failures:
                raise failures.pop()
            return news(everything=everything)

        monkeypatch.setattr(here, "news", news_that_fails_once)
        async with (
            Hints(nats_server.url, name="here") as hints_here,
            Hints(nats_server.url, name="there") as hints_there,
            shared(here, hints_here),
            shared(there, hints_there),
        ):
            here.take("a")
            await _until(lambda: there._foreign == {"a": 1})

    before = tasks.ENDED.labels("requests counted")._value.get()
    asyncio.run(story())
    assert tasks.ENDED.labels("requests counted")._value.get() == before + 1


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  nothing rings when a counter in another object moves
            await asyncio.sleep(0.02)


# -- over HTTP

LIMIT = 40


def remaining(response: requests.Response) -> tuple[int, int]:
    """Requests and seconds that the answer says are left."""
    left, seconds = re.fullmatch(r'"key";r=(\d+);t=(\d+)', response.headers["RateLimit"]).groups()  # type: ignore[union-attr]
    return int(left), int(seconds)


def asked(url: str, shop: Shop) -> requests.Response:
    return requests.get(url + PATH, headers={"X-Api-Key": shop.api_key}, timeout=10)


def test_two_gateways_grant_the_limit_once(stack: Stack, desk: Desk, shop: Shop, tmp_path: Path) -> None:
    """40 requests in all: 25 here, and when the news has come, what is left of them there; then nothing anywhere."""
    own = desk.shop(shop.currency)
    settings = {
        "FIATGATE_RATE_LIMIT_PER_MINUTE": str(LIMIT),
        "FIATGATE_NATS_URL": stack.home.running_stack()["nats_urls"]["gateway"],
    }
    with (
        gateway_process(stack.addresses, tmp_path / "here.log", **settings) as here,
        gateway_process(stack.addresses, tmp_path / "there.log", **settings) as there,
    ):
        clock_says = desk.shop(shop.currency)  # whose requests tell how long the minute still is
        wait_until(
            lambda: remaining(asked(here, clock_says))[1] > 12,
            "a minute with time in it",
            timeout_seconds=30,
            every_seconds=1,
        )
        granted = [asked(here, own).status_code for _ in range(25)].count(404)
        assert granted == 25

        def has_heard() -> bool:
            nonlocal granted
            left, _ = remaining(asked(there, own))
            granted += 1
            return left == LIMIT - granted

        wait_until(has_heard, "the other gateway to hear of them", timeout_seconds=5, every_seconds=0.4)
        while asked(there, own).status_code != 429:
            granted += 1
        assert granted == LIMIT
        wait_until(lambda: asked(here, own).status_code == 429, "the first to hear of it", timeout_seconds=5)
        refused = asked(here, own)
        assert code_of(refused) == "RATE_LIMITED"
        left, seconds = remaining(refused)
        assert (left, refused.headers["Retry-After"]) == (0, str(seconds))
        assert refused.headers["RateLimit-Policy"] == f'"key";q={LIMIT};w=60'
        assert refused.json()["error"]["details"] == {
            "limit": LIMIT,
            "window_seconds": 60,
            "retry_after_seconds": seconds,
        }
        assert asked(here, clock_says).status_code == 404, "another key has its own limit"


def test_without_a_limit_there_is_no_word_of_one(stack: Stack, shop: Shop, tmp_path: Path) -> None:
    settings = {"FIATGATE_RATE_LIMIT_PER_MINUTE": "0"}
    with gateway_process(stack.addresses, tmp_path / "gateway.log", **settings) as url:
        response = asked(url, shop)
    assert response.status_code == 200
    assert not {"RateLimit", "RateLimit-Policy"} & set(response.headers)


def test_it_goes_on_while_nats_is_away(stack: Stack, desk: Desk, shop: Shop, tmp_path: Path) -> None:
    settings = {"FIATGATE_RATE_LIMIT_PER_MINUTE": "1000000", "FIATGATE_NATS_URL": "nats://127.0.0.1:1"}
    with gateway_process(stack.addresses, tmp_path / "gateway.log", **settings) as url:
        assert "RateLimit" in asked(url, shop).headers
        assert "RateLimit" not in requests.get(url + PATH, timeout=10).headers, (
            "nothing is counted without a key"
        )
