"""What anybody may ask for as often as they like costs little, however often it is asked for."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from deploy.local.waiting import wait_until
from gateway.pay import brand
from gateway.pay.brand import CACHED_MAX, stylesheet
from gateway.pay.qr import svg_of
from tests.gateway.process import SERVICES, gateway_process
from tests.gateway.strangers import Stranger, Watched, head

COLOURS = 200
STRANGERS = 100


def test_colours_share_the_powers_that_they_cost() -> None:
    """A colour took 10 ms, for powers of decimal numbers; there are 256 of them, and each is computed once."""
    some = random.Random(7)
    names = [f"{some.randrange(2**24):06x}.css" for _ in range(COLOURS)]
    brand._linear.cache_clear()
    assert all(stylesheet(name) for name in names)
    powers = brand._linear.cache_info()
    assert powers.misses <= 256 < powers.hits


def test_colours_and_codes_are_remembered_within_bounds() -> None:
    assert stylesheet("1d5bb8.css") is stylesheet("1d5bb8.css")
    assert svg_of("an account") is svg_of("an account")
    for number in range(CACHED_MAX + 10):
        stylesheet(f"{number:06x}.css")
    assert stylesheet.cache_info().currsize == CACHED_MAX
    assert svg_of.cache_info().maxsize is not None


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


def test_requests_whether_all_is_ready_share_the_questions_to_the_services(tmp_path: Path) -> None:
    async def asked(gateway: Watched) -> set[int]:
        strangers = [await Stranger.connected(gateway) for _ in range(STRANGERS)]
        for stranger in strangers:
            stranger.send(head("GET", "/readyz"))
        statuses = set(await asyncio.gather(*(stranger.status() for stranger in strangers)))
        for stranger in strangers:
            stranger.close()
        return statuses

    with health_server() as (service, address):
        log = tmp_path / "gateway.log"
        with gateway_process(dict.fromkeys(SERVICES, address), log) as url:
            gateway = Watched(url, "")
            assert asyncio.run(asked(gateway)) == {200}
            assert 0 < service.asked.total() < len(SERVICES) * STRANGERS / 4, "once in a second"
            told = service.asked.total()
            wait_until(
                lambda: asyncio.run(asked(gateway)) == {200} and service.asked.total() > told,
                "the services to be asked again",
                timeout_seconds=10,
            )
