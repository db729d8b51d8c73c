"""The limit of requests per key: the counting, and the headers over HTTP."""

import re

import pytest
import requests

from deploy.local.waiting import wait_until
from gateway.access.limits import BYTES_OF_ONE_REQUEST, WINDOW_SECONDS, RateLimit
from gateway.walls.uploads import BODY_MAX_BYTES
from tests.gateway.conftest import LIMIT
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop, code_of
from tests.gateway.strangers import Watched
from tests.support.clock import ManualClock

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


def remaining(response: requests.Response) -> tuple[int, int]:
    """Requests and seconds that the answer says are left."""
    left, seconds = re.fullmatch(r'"key";r=(\d+);t=(\d+)', response.headers["RateLimit"]).groups()  # type: ignore[union-attr]
    return int(left), int(seconds)


def asked(url: str, shop: Shop) -> requests.Response:
    return requests.get(url + PATH, headers={"X-Api-Key": shop.api_key}, timeout=HTTP_SECONDS)


def a_minute_with_time_in_it(gateway: Watched, desk: Desk, currency: str) -> None:
    other = desk.shop(currency)
    wait_until(
        lambda: remaining(asked(gateway.url, other))[1] > 12,
        "a minute with time in it",
        timeout_seconds=30,
        every_seconds=1,
    )


def test_each_gateway_process_grants_the_limit_to_a_key(strict: Watched, desk: Desk, currency: str) -> None:
    own, other = desk.shop(currency), desk.shop(currency)
    a_minute_with_time_in_it(strict, desk, currency)
    assert [asked(strict.url, own).status_code for _ in range(LIMIT)] == [404] * LIMIT
    refused = asked(strict.url, own)
    assert code_of(refused) == "RATE_LIMITED"
    left, seconds = remaining(refused)
    assert (left, refused.headers["Retry-After"]) == (0, str(seconds))
    assert refused.headers["RateLimit-Policy"] == f'"key";q={LIMIT};w=60'
    assert refused.json()["error"]["details"] == {
        "limit": LIMIT,
        "window_seconds": 60,
        "retry_after_seconds": seconds,
    }
    assert asked(strict.url, other).status_code == 404, "another key has its own limit"
    assert asked(own.url, own).status_code == 404, "another process has its own count"


def test_large_bodies_use_up_the_limit_of_their_key_and_of_no_other(
    strict: Watched, desk: Desk, currency: str
) -> None:
    own, other = desk.shop(currency), desk.shop(currency)
    large = b'{"a":[' + b",".join([b"{}"] * 20_000) + b"]}"

    def sent() -> requests.Response:
        headers = {"X-Api-Key": own.api_key, "Content-Type": "application/json"}
        return requests.post(
            f"{strict.url}/api/v1/create-invoice", data=large, headers=headers, timeout=HTTP_SECONDS
        )

    a_minute_with_time_in_it(strict, desk, currency)
    first, second = sent(), sent()
    assert [first.status_code, second.status_code] == [400, 400]
    assert [remaining(each)[0] for each in (first, second)] == [5, 0]
    assert code_of(sent()) == "RATE_LIMITED"
    assert code_of(asked(strict.url, own)) == "RATE_LIMITED"
    assert remaining(asked(strict.url, other))[0] > 0, "another key has its own limit"


def test_without_a_limit_or_a_key_there_is_no_word_of_one(lenient: Watched, shop: Shop) -> None:
    for response in (asked(lenient.url, shop), requests.get(shop.url + PATH, timeout=HTTP_SECONDS)):
        assert not {"RateLimit", "RateLimit-Policy"} & set(response.headers)
