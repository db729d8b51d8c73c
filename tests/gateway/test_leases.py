"""How long a worker uses a verified key without a call."""

import asyncio

import pytest

from fiatgate.merchants.v1.merchants_pb2 import AuthenticateResponse
from gateway.access.leases import KeyLeases
from kit.rpc import leases
from kit.rpc.errors import Refused, denied


class Instant:
    """A monotonic clock that stands still until it is set."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now() -> Instant:
    return Instant()


@pytest.fixture
def held(now: Instant) -> KeyLeases:
    return KeyLeases(now_seconds=now)


def accepted(lease_milliseconds: int) -> AuthenticateResponse:
    return AuthenticateResponse(key_id="1", lease_milliseconds=lease_milliseconds)


def fetch(held: KeyLeases, key: str, lease_milliseconds: int = 1000) -> AuthenticateResponse:
    async def call() -> AuthenticateResponse:
        return accepted(lease_milliseconds)

    return asyncio.run(held.fetch(key, call))


def test_a_lease_lasts_from_the_start_of_the_call(held: KeyLeases, now: Instant) -> None:
    async def slow() -> AuthenticateResponse:
        now.seconds += 0.75
        return accepted(1000)

    answer = asyncio.run(held.fetch("key", slow))
    now.seconds = 100.875
    assert held.find("key") == answer
    now.seconds = 101.0
    assert held.find("key") is None


def test_an_answer_that_took_as_long_as_its_lease_is_used_once(held: KeyLeases, now: Instant) -> None:
    async def slow() -> AuthenticateResponse:
        now.seconds += 1
        return accepted(1000)

    assert asyncio.run(held.fetch("key", slow)).key_id == "1"
    assert held.find("key") is None


def test_a_service_that_gives_no_lease_is_called_for_each_request(held: KeyLeases) -> None:
    fetch(held, "key", lease_milliseconds=0)
    assert held.find("key") is None


def test_a_lease_is_of_one_key(held: KeyLeases) -> None:
    fetch(held, "key")
    assert held.find("Key") is None
    assert held.find("") is None


def test_a_refused_key_has_no_lease(held: KeyLeases, now: Instant) -> None:
    async def refuse() -> AuthenticateResponse:
        raise denied("API_KEY_INVALID", "")

    fetch(held, "key")
    now.seconds += 1
    with pytest.raises(Refused):
        asyncio.run(held.fetch("key", refuse))
    assert held.find("key") is None


def test_leases_are_bounded_and_ended_ones_go(
    held: KeyLeases, now: Instant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASES_MAX", 100)
    for number in range(leases.LEASES_MAX + 10):
        fetch(held, f"key {number}")
    assert len(held) == leases.LEASES_MAX
    assert held.find("key 0") is None, "the oldest made room"
    assert held.find("key 10") is not None
    now.seconds += 1
    fetch(held, "another")
    assert len(held) == 1
