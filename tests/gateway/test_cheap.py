"""What anybody may ask for as often as they like costs little, however often it is asked for."""

import asyncio
import random
import sys
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from gateway.json import body
from gateway.json.body import _members
from gateway.pay import brand
from gateway.pay.brand import stylesheet
from gateway.pay.files import CACHED_MAX, BrandResource
from gateway.pay.qr import svg_of
from gateway.walls.strangers import strangers_of
from tests.gateway.conftest import LIMIT
from tests.gateway.process import SERVICES
from tests.gateway.strangers import Watched, answers, head, networks, watched_gateway

pytestmark = pytest.mark.anyio

COLOURS = 200
STRANGERS = 100
ATTACKER, OTHER = networks(8)[6:]


@contextmanager
def calls_counted() -> Iterator[Counter[str]]:
    """Counts the calls of Python functions, by file."""
    calls = Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[frame.f_code.co_filename] += 1

    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)


# -- colours and codes


def test_a_colour_costs_few_steps() -> None:
    """It took 10 ms, and then a tenth of one: twenty mixtures of decimal numbers for each theme."""
    some = random.Random(7)
    names = [f"{some.randrange(2**24):06x}.css" for _ in range(COLOURS)]
    with calls_counted() as calls:
        assert all(stylesheet(name) for name in names)
    assert calls[brand.__file__] < 130 * COLOURS


async def test_colours_and_codes_are_remembered_within_bounds() -> None:
    sheets = BrandResource(strangers_of(0))
    first = await sheets._sheet("1d5bb8.css", OTHER)
    assert await sheets._sheet("1d5bb8.css", OTHER) is first
    for number in range(CACHED_MAX + 10):
        await sheets._sheet(f"{number:06x}.css", OTHER)
    assert len(sheets._known) == CACHED_MAX
    assert svg_of("an account") is svg_of("an account")
    assert svg_of.cache_info().maxsize is not None


async def test_a_network_that_asks_for_many_colours_is_stopped_and_nobody_else_notices(
    strict: Watched,
) -> None:
    """32 clients with random colours made another merchant's p50 four times as long."""
    some = random.Random(7)

    def colours(count: int) -> list[bytes]:
        return [head("GET", f"/pay-brand/{some.randrange(2**24):06x}.css") for _ in range(count)]

    (shops,) = colours(1)
    assert await answers(strict, OTHER, [shops]) == {200: 1}
    flooded = await answers(strict, ATTACKER, colours(LIMIT + 100))
    assert set(flooded) == {200, 429}
    assert LIMIT <= flooded[200] < LIMIT + 50, "one more is answered in three seconds"
    assert await answers(strict, ATTACKER, [shops] * 20) == {200: 20}, "a known colour costs nothing"
    assert await answers(strict, OTHER, colours(1)) == {200: 1}


# -- bodies


@pytest.mark.parametrize("item", ["{}", '{"":1}', '{"a":1,"b":2}', "1", "1.5"])
def test_what_an_unknown_member_holds_is_read_and_not_kept(item: str) -> None:
    """Each of 20,000 objects became a dictionary, and each number was a call: 63 KB took 3 ms of all clients."""
    text = f'{{"amount":"1","a":[{",".join([item] * (63 * 1024 // (len(item) + 1)))}]}}'
    _members(text)
    tracemalloc.start()
    try:
        found = _members(text)
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found is not None
    assert found["amount"] == "1"
    assert most_bytes < 8 * len(text)
    with calls_counted() as calls:
        _members(text)
    assert calls[body.__file__] < text.count("{") + 20


# -- /readyz


class _Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # grpc ships no types of it
    """A service that is well, and counts how often it is asked."""

    def __init__(self) -> None:
        self.asked = Counter[str]()

    def Check(
        self, request: health_pb2.HealthCheckRequest, context: grpc.ServicerContext
    ) -> health_pb2.HealthCheckResponse:
        self.asked[request.service] += 1
        return health_pb2.HealthCheckResponse(status=health_pb2.HealthCheckResponse.SERVING)


@contextmanager
def health_server() -> Iterator[tuple[_Health, str]]:
    service = _Health()
    server = grpc.server(futures.ThreadPoolExecutor(4))
    health_pb2_grpc.add_HealthServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield service, f"127.0.0.1:{port}"
    finally:
        server.stop(None).wait()


async def test_requests_whether_all_is_ready_share_the_questions_to_the_services(tmp_path: Path) -> None:
    requests = [head("GET", "/readyz")] * STRANGERS
    with (
        health_server() as (service, address),
        watched_gateway(dict.fromkeys(SERVICES, address), tmp_path) as gateway,
    ):
        assert (await answers(gateway, OTHER, requests)).keys() == {200}
        told = service.asked.total()
        assert 0 < told < len(SERVICES) * STRANGERS / 4, "once in a second"
        async with asyncio.timeout(10):
            while service.asked.total() == told:
                assert (await answers(gateway, OTHER, requests)).keys() == {200}
