"""Floods of keys and payments that do not exist, and whose they are behind a proxy."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path

import pytest
import requests

from gateway.walls.pace import AT_ONCE_SECONDS, PAGES, Pace
from gateway.walls.shared_calls import SharedCalls
from gateway.walls.strangers import KEYS, KINDS, PAYMENTS, strangers_of
from kit.base.ids import new_id
from kit.rpc import deadline
from kit.rpc.errors import Refused, denied, not_found
from kit.web.walls import strangers
from kit.web.walls.clients import Clients
from tests.gateway.conftest import LIMIT
from tests.gateway.desk import HTTP_SECONDS, Shop
from tests.gateway.strangers import Watched, answers, head, networks, watched_gateway
from tests.support.stack import Stack

pytestmark = pytest.mark.anyio

ATTACKER, OTHER = networks(2)


async def one_turn() -> None:
    """Lets each task run until it waits; no time passes, so nothing depends on how busy the machine is."""
    await asyncio.sleep(0)


def unknown_payments(count: int) -> list[bytes]:
    return [head("GET", f"/pay/{new_id()}") for _ in range(count)]


def unknown_keys(count: int) -> list[bytes]:
    return [head("GET", "/api/v1/invoices", X_Api_Key=f"fg_{new_id().hex}") for _ in range(count)]


@pytest.mark.parametrize(
    ("asked", "status", "sources"),
    [(unknown_payments, 404, networks(6)[2:4]), (unknown_keys, 403, networks(6)[4:])],
    ids=["payments", "keys"],
)
async def test_a_flood_of_unknown_names_is_stopped_and_nobody_else_notices(
    shop: Shop, strict: Watched, asked: object, status: int, sources: Sequence[str]
) -> None:
    page = head("GET", f"/pay/{shop.create()['invoice_id']}")
    order = head("GET", "/api/v1/currencies", X_Api_Key=shop.api_key)
    assert callable(asked)
    attacker, other = sources

    def turned_away() -> float:
        return strict.counted("fiatgate_turned_away_total", wall="strangers")

    before = turned_away()
    assert await answers(strict, attacker, [page, order]) == {200: 2}
    flooded = await answers(strict, attacker, asked(LIMIT + 100))
    assert set(flooded) == {status, 429}
    assert LIMIT <= flooded[status] < LIMIT + 50, "one more is answered in three seconds"
    assert turned_away() - before == flooded[429]
    assert await answers(strict, attacker, [page, order] * 4) == {200: 8}, "known names cost nothing"
    assert await answers(strict, other, [page, order, *asked(1)]) == {200: 2, status: 1}


def test_the_refusal_is_the_documented_one_and_clients_of_a_trusted_proxy_are_told_apart(
    strict: Watched,
) -> None:
    def asked(forwarded: str, path: str = "") -> requests.Response:
        headers = {"X-Forwarded-For": forwarded, "X-Api-Key": f"fg_{new_id().hex}"}
        return requests.get(
            f"{strict.url}{path or f'/pay/{new_id()}'}", headers=headers, timeout=HTTP_SECONDS
        )

    def refused(most: int, *about: str) -> requests.Response:
        """A token comes back every three seconds: perhaps the first request meets one."""
        return next(answer for _ in range(most) if (answer := asked(*about)).status_code == 429)

    answer = refused(3 * LIMIT, "192.0.2.1", "/api/v1/invoices")
    assert answer.headers["Retry-After"] == "3"
    assert answer.json()["error"]["code"] == "RATE_LIMITED"
    assert answer.json()["error"]["details"] == {"retry_after_seconds": 3}
    page = refused(LIMIT // 2, "203.0.113.9, 192.0.2.1")
    assert "Too many requests came from your network." in page.text
    assert asked("192.0.2.2").status_code == 404


async def test_pages_of_one_network_wait_for_their_turn_and_those_of_another_do_not(
    shop: Shop, stack: Stack, tmp_path: Path
) -> None:
    page = head("GET", f"/pay/{shop.create()['invoice_id']}")

    two_a_minute = {"FIATGATE_NETWORK_PAGE_REQUESTS_PER_MINUTE": "2"}
    with watched_gateway(stack.addresses, tmp_path, **two_a_minute) as gateway:
        flooded, other = await asyncio.gather(
            answers(gateway, ATTACKER, [page] * 5), answers(gateway, OTHER, [page])
        )
        assert flooded == {200: 1, 429: 4}
        assert other == {200: 1}
        assert gateway.counted("fiatgate_turned_away_total", wall="page", kind="network") == 4


async def test_a_request_above_the_pace_of_its_network_waits_and_is_served() -> None:
    now = [1000.0]  # seconds
    pace = Pace(6000, now_seconds=lambda: now[0])
    async with asyncio.timeout(HTTP_SECONDS):
        await asyncio.gather(*(pace.turn("a") for _ in range(100 * AT_ONCE_SECONDS)))
        late = [asyncio.create_task(pace.turn("a")) for _ in range(10)]
        await pace.turn("b")
        assert not any(each.done() for each in late)
        await asyncio.gather(*late)


async def test_pages_of_networks_take_turns_and_the_largest_makes_room() -> None:
    """Four networks, each below its pace, held all places: pages of others were refused."""
    pace, over = Pace(0), asyncio.Event()

    async def page(network: str) -> None:
        async with pace.page(network):
            await over.wait()

    flood = [asyncio.create_task(page(f"a{number % 5}")) for number in range(PAGES.running + PAGES.waiting)]
    await one_turn()
    other = asyncio.create_task(page("b"))
    await one_turn()
    over.set()
    async with asyncio.timeout(HTTP_SECONDS):
        await other
        ends = await asyncio.gather(*flood, return_exceptions=True)
    assert [type(end) for end in ends if end is not None] == [Refused]


async def test_a_shared_call_has_the_time_of_the_last_request_that_waits_for_it() -> None:
    """A slow service answers a busy shop: a call in the first request's time failed requests that had time left."""
    shared, left = SharedCalls[str, float](), []
    first_ends = asyncio.Event()

    async def call() -> float:
        left.append(deadline.remaining_seconds() or 0)
        if len(left) == 1:
            await first_ends.wait()
        return left[-1]

    async def request(seconds: float) -> float:
        with deadline.within(seconds):
            return await shared.answer("key", call)

    requests = [asyncio.create_task(request(seconds)) for seconds in (100, 0.01, 200)]
    with pytest.raises(Refused, match="DB_UNAVAILABLE"):
        await requests[1]
    first_ends.set()
    async with asyncio.timeout(HTTP_SECONDS):
        await requests[2]
    assert len(left) == 2
    assert left[1] > 100


async def test_requests_that_come_in_the_pause_before_a_shared_call_share_it() -> None:
    shared = SharedCalls[str, int](pause_seconds=0.5)
    ends, begun = asyncio.Event(), 0

    async def call() -> int:
        nonlocal begun
        begun += 1
        if begun == 1:
            await ends.wait()
        return begun

    first, second = (asyncio.create_task(shared.answer("key", call)) for _ in range(2))
    await one_turn()
    ends.set()
    assert await first == 1
    for _ in range(10):
        await one_turn()
    async with asyncio.timeout(HTTP_SECONDS):
        assert await shared.answer("key", call) == await second == 2


# -- who the client is

PROXIES = tuple(map(ip_network, ("10.0.0.0/8", "2001:db8:1::/48")))


def clients(header: str = "x-forwarded-for") -> Clients:
    return Clients(PROXIES, header=header, prefix_4=32, prefix_6=64)


@pytest.mark.parametrize(
    ("peer", "lines", "client"),
    [
        ("192.0.2.7", ["203.0.113.1"], "192.0.2.7"),
        ("10.0.0.1", [], "10.0.0.1"),
        ("10.0.0.1", ["203.0.113.1"], "203.0.113.1"),
        ("::ffff:10.0.0.1", ["203.0.113.1"], "203.0.113.1"),
        ("10.0.0.1", ["198.51.100.1, 203.0.113.1"], "203.0.113.1"),
        ("10.0.0.1", ["203.0.113.1, 10.9.9.9, 10.0.0.3"], "203.0.113.1"),
        ("10.0.0.1", ["198.51.100.1", "203.0.113.1"], "203.0.113.1"),
        ("10.0.0.1", ["203.0.113.1:4711"], "203.0.113.1"),
        ("10.0.0.1", ["2001:db8:2::1"], "2001:db8:2::1"),
        ("10.0.0.1", ["[2001:db8:2::1]:4711"], "2001:db8:2::1"),
        ("2001:db8:1::5", ["203.0.113.1"], "203.0.113.1"),
        ("10.0.0.1", ["203.0.113.1, not an address"], "10.0.0.1"),
        ("10.0.0.1", ["unknown, 10.0.0.2"], "10.0.0.2"),
        ("10.0.0.1", [""], "10.0.0.1"),
        ("10.0.0.1", ["10.1.1.1, " * 900], "10.0.0.1"),
        ("", ["203.0.113.1"], ""),
    ],
)
def test_the_client_is_the_first_from_the_right_that_is_no_proxy(
    peer: str, lines: list[str], client: str
) -> None:
    headers = [(b"forwarded", b"for=198.51.100.9"), *((b"x-forwarded-for", line.encode()) for line in lines)]
    assert clients().client(peer, headers) == client


@pytest.mark.parametrize(
    ("line", "client"),
    [
        ("for=203.0.113.1", "203.0.113.1"),
        ("for=198.51.100.1, For=203.0.113.1;proto=https", "203.0.113.1"),
        ('proto=https;for="203.0.113.1:80"', "203.0.113.1"),
        ('for="[2001:db8:2::1]:4711"', "2001:db8:2::1"),
        ('for=", for=203.0.113.1', "203.0.113.1"),
        ("for=_hidden", "10.0.0.1"),
        ("proto=https", "10.0.0.1"),
    ],
)
def test_forwarded_is_read_where_the_proxy_writes_that(line: str, client: str) -> None:
    headers = [(b"x-forwarded-for", b"198.51.100.9"), (b"forwarded", line.encode())]
    assert clients("forwarded").client("10.0.0.1", headers) == client


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.9", "203.0.113.9/32"),
        ("::ffff:203.0.113.9", "203.0.113.9/32"),
        ("2001:db8:2:3:4:5:6:7", "2001:db8:2:3::/64"),
        ("", ""),
    ],
)
def test_the_network_of_an_address(address: str, network: str) -> None:
    assert clients().network(address) == network


# -- the tokens by themselves


async def found() -> str:
    return "here"


async def missing() -> str:
    raise denied("API_KEY_INVALID", "no such key")


async def failing() -> str:
    raise Refused("DB_UNAVAILABLE")


async def test_only_names_that_do_not_exist_cost_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "REFUSAL_SECONDS", 0)
    bound = strangers_of(2)
    for name in range(10):
        assert await bound.ask(KEYS, "net", f"good {name}", found) == "here"
        with pytest.raises(Refused, match="DB_UNAVAILABLE"):
            await bound.ask(KEYS, "net", "unlucky", failing)
    for name in range(2):
        with pytest.raises(Refused, match="API_KEY_INVALID"):
            await bound.ask(KEYS, "net", f"bad {name}", missing)
    with pytest.raises(Refused, match="RATE_LIMITED"):
        await bound.ask(KEYS, "net", "new", found)
    assert await bound.ask(KEYS, "net", "good 1", found) == "here"
    for _ in range(3):
        with pytest.raises(Refused, match="API_KEY_INVALID"):
            await bound.ask(KEYS, "net", "good 1", missing)  # it was deactivated


async def test_a_name_that_is_asked_for_again_and_again_costs_one_token_and_one_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strangers, "PACE_SECONDS", 0)
    asked = 0

    async def counted() -> str:
        nonlocal asked
        asked += 1
        return await missing()

    now = [1000.0]  # seconds
    bound = strangers_of(5, now_seconds=lambda: now[0])
    for _ in range(100):
        with pytest.raises(Refused, match="API_KEY_INVALID"):
            await bound.ask(KEYS, "net", "old key", counted)
    assert asked == 1
    assert await bound.ask(KEYS, "net", "new key", found) == "here"
    now[0] += strangers.MISSING_SECONDS
    with pytest.raises(Refused, match="API_KEY_INVALID"):
        await bound.ask(KEYS, "net", "old key", counted)
    assert asked == 2


async def test_strangers_of_many_networks_together_leave_room_for_what_is_known_and_for_newcomers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of 200 networks had its tokens, and all of them asked at a time."""
    monkeypatch.setattr(strangers, "PACE_SECONDS", 0)
    asked, end = 0, asyncio.Event()

    async def hangs() -> str:
        nonlocal asked
        asked += 1
        await end.wait()
        raise not_found("INVOICE_NOT_FOUND", "no such payment")

    bound = strangers_of(120)
    assert await bound.ask(PAYMENTS, "home", "known", found) == "here"
    guesses = [
        asyncio.create_task(bound.ask(PAYMENTS, f"net {number % 200}", f"guess {number}", hangs))
        for number in range(800)
    ]
    await one_turn()
    assert asked == KINDS[PAYMENTS].at_a_time
    assert await bound.ask(PAYMENTS, "home", "known", found) == "here"
    assert await bound.ask(KEYS, "home", "new key", found) == "here"
    newcomer = asyncio.create_task(bound.ask(PAYMENTS, "home", "new payment", found))
    await one_turn()
    end.set()
    assert await newcomer == "here"
    assert asked <= 200 + 2 * KINDS[PAYMENTS].at_a_time, "it waits for one guess of each network, not for all"
    await asyncio.gather(*guesses, return_exceptions=True)


async def test_a_few_networks_that_ask_for_all_they_may_leave_room_for_a_newcomer_and_pay_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eleven networks filled the queue of all, and paid nothing for questions that were refused."""
    monkeypatch.setattr(strangers, "PACE_SECONDS", 0)
    monkeypatch.setattr(strangers, "REFUSAL_SECONDS", 0)
    end = asyncio.Event()

    async def hangs() -> str:
        await end.wait()
        raise not_found("INVOICE_NOT_FOUND", "no such payment")

    bound = strangers_of(120, now_seconds=lambda: 1000.0)
    guesses = [
        asyncio.create_task(bound.ask(PAYMENTS, f"net {number % 11}", f"guess {number}", hangs))
        for number in range(11 * 120)
    ]
    await one_turn()
    newcomer = asyncio.create_task(bound.ask(PAYMENTS, "home", "new payment", found))
    await one_turn()
    end.set()
    assert await newcomer == "here"
    await asyncio.gather(*guesses, return_exceptions=True)
    with pytest.raises(Refused, match="RATE_LIMITED"):
        await bound.ask(PAYMENTS, "net 0", "one more", found)


async def test_an_answer_to_one_network_waits_for_one_to_each_other_and_not_for_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """900 requests with one old key made the wrong key of another network wait for nine seconds."""
    monkeypatch.setattr(strangers, "PACE_SECONDS", 0.001)
    bound = strangers_of(120)
    with pytest.raises(Refused, match="API_KEY_INVALID"):
        await bound.ask(KEYS, "busy", "old key", missing)
    repeats = [asyncio.create_task(bound.ask(KEYS, "busy", "old key", missing)) for _ in range(500)]
    await one_turn()
    with pytest.raises(Refused, match="API_KEY_INVALID"):
        await bound.ask(KEYS, "home", "mistyped key", missing)
    assert sum(repeat.done() for repeat in repeats) < 10
    for repeat in repeats:
        repeat.cancel()
    await asyncio.gather(*repeats, return_exceptions=True)


async def test_answers_that_there_is_no_such_name_leave_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Scripts of many networks that ask again as soon as they are answered kept a worker busy with nothing else."""
    monkeypatch.setattr(strangers, "PACE_SECONDS", 60)
    bound = strangers_of(120)
    guesses = [
        asyncio.create_task(bound.ask(KEYS, f"net {number}", f"guess {number}", missing))
        for number in range(20)
    ]
    (first,), _ = await asyncio.wait(guesses, return_when=asyncio.FIRST_COMPLETED)
    assert isinstance(first.exception(), Refused)
    assert await bound.ask(KEYS, "home", "new key", found) == "here", "what exists waits for none of them"
    assert sum(guess.done() for guess in guesses) == 1
    for guess in guesses:
        guess.cancel()
    await asyncio.gather(*guesses, return_exceptions=True)


def test_a_name_that_is_remembered_as_missing_keeps_nothing_of_its_request() -> None:
    class OfTheRequest:
        pass

    async def story() -> weakref.ref[OfTheRequest]:
        of_the_request = OfTheRequest()

        async def question() -> str:
            assert of_the_request
            raise denied("API_KEY_INVALID", "no such key")

        with pytest.raises(Refused, match="API_KEY_INVALID"):
            await bound.ask(KEYS, "net", "a key", question)
        return weakref.ref(of_the_request)

    bound = strangers_of(5)
    kept = asyncio.run(story())
    gc.collect()
    assert kept() is None, "what a guess held stays in memory: a flood of guesses fills it"
