"""The limit of requests per key: the counting, and the headers over HTTP."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import requests

from deploy.local.waiting import wait_until
from gateway.access.limits import BYTES_OF_ONE_REQUEST, WINDOW_SECONDS, RateLimit
from gateway.walls.uploads import BODY_MAX_BYTES
from tests.gateway.desk import Desk, Shop, code_of
from tests.gateway.process import gateway_process
from tests.support.clock import ManualClock
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


@pytest.mark.parametrize(
    ("size", "counted"),
    [(0, 1), (1, 1), (BYTES_OF_ONE_REQUEST, 1), (BYTES_OF_ONE_REQUEST + 1, 2), (BODY_MAX_BYTES, 16)],
)
def test_a_body_counts_as_the_requests_whose_time_it_takes(
    clock: ManualClock, size: int, counted: int
) -> None:
    limit = RateLimit(100, clock=clock)
    assert limit.take("a").granted
    assert limit.count_body("a", size).remaining == 100 - counted
    assert limit.take("b").remaining == 99, "another key has its own limit"


def test_a_body_above_the_limit_leaves_nothing_for_the_next_request(clock: ManualClock) -> None:
    limit = RateLimit(10, clock=clock)
    assert limit.take("a").granted
    assert limit.count_body("a", BODY_MAX_BYTES).remaining == 0
    assert not limit.take("a").granted
    clock.advance(seconds=WINDOW_SECONDS)
    assert limit.take("a").remaining == 9


def test_the_headers_are_those_of_the_draft(clock: ManualClock) -> None:
    limit = RateLimit(100, clock=clock)
    clock.advance(seconds=18)
    assert limit.take("a").headers() == {
        "RateLimit-Policy": '"key";q=100;w=60',
        "RateLimit": '"key";r=99;t=42',
    }


# -- over HTTP

LIMIT = 10


def remaining(response: requests.Response) -> tuple[int, int]:
    """Requests and seconds that the answer says are left."""
    left, seconds = re.fullmatch(r'"key";r=(\d+);t=(\d+)', response.headers["RateLimit"]).groups()  # type: ignore[union-attr]
    return int(left), int(seconds)


def asked(url: str, shop: Shop) -> requests.Response:
    return requests.get(url + PATH, headers={"X-Api-Key": shop.api_key}, timeout=10)


def test_each_gateway_process_grants_the_limit_to_a_key(
    stack: Stack, desk: Desk, shop: Shop, tmp_path: Path
) -> None:
    own, other = desk.shop(shop.currency), desk.shop(shop.currency)
    settings = {"FIATGATE_RATE_LIMIT_PER_MINUTE": str(LIMIT)}
    with (
        gateway_process(stack.addresses, tmp_path / "here.log", **settings) as here,
        gateway_process(stack.addresses, tmp_path / "there.log", **settings) as there,
    ):
        wait_until(
            lambda: remaining(asked(here, other))[1] > 12,
            "a minute with time in it",
            timeout_seconds=30,
            every_seconds=1,
        )
        assert [asked(here, own).status_code for _ in range(LIMIT)] == [404] * LIMIT
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
        assert asked(here, other).status_code == 404, "another key has its own limit"
        assert remaining(asked(there, own))[0] == LIMIT - 1, "the other process has its own count"


def test_large_bodies_use_up_the_limit_of_their_key_and_of_no_other(
    stack: Stack, desk: Desk, shop: Shop, tmp_path: Path
) -> None:
    own, other = desk.shop(shop.currency), desk.shop(shop.currency)
    large = b'{"a":[' + b",".join([b"{}"] * 20_000) + b"]}"

    def sent(url: str) -> requests.Response:
        headers = {"X-Api-Key": own.api_key, "Content-Type": "application/json"}
        return requests.post(f"{url}/api/v1/create-invoice", data=large, headers=headers, timeout=10)

    with gateway_process(
        stack.addresses, tmp_path / "gateway.log", FIATGATE_RATE_LIMIT_PER_MINUTE="20"
    ) as url:
        wait_until(
            lambda: remaining(asked(url, other))[1] > 12,
            "a minute with time in it",
            timeout_seconds=30,
            every_seconds=1,
        )
        first, second = sent(url), sent(url)
        assert [first.status_code, second.status_code] == [400, 400]
        assert [remaining(each)[0] for each in (first, second)] == [5, 0]
        assert code_of(sent(url)) == "RATE_LIMITED"
        assert code_of(asked(url, own)) == "RATE_LIMITED"
        assert remaining(asked(url, other))[0] > 0, "another key has its own limit"


def test_without_a_limit_there_is_no_word_of_one(stack: Stack, shop: Shop, tmp_path: Path) -> None:
    settings = {"FIATGATE_RATE_LIMIT_PER_MINUTE": "0"}
    with gateway_process(stack.addresses, tmp_path / "gateway.log", **settings) as url:
        response = asked(url, shop)
    assert response.status_code == 200
    assert not {"RateLimit", "RateLimit-Policy"} & set(response.headers)


def test_nothing_is_counted_without_a_key(stack: Stack, shop: Shop, tmp_path: Path) -> None:
    with gateway_process(stack.addresses, tmp_path / "gateway.log") as url:
        assert "RateLimit" in asked(url, shop).headers
        assert "RateLimit" not in requests.get(url + PATH, timeout=10).headers
