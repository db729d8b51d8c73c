"""Connections: few bytes of an unfinished head are kept, and idle ones make room for clients that ask something."""

from __future__ import annotations

import asyncio
import resource
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
import requests

from deploy.local.waiting import wait_until
from kit.web.http1 import HEAD_MAX_BYTES
from tests.gateway.desk import HTTP_SECONDS
from tests.gateway.strangers import ANSWER_SECONDS, CLOSED, Stranger, Watched, head, networks, watched_gateway
from tests.support.stack import Stack

MIB = 2**20
ALIVE = head("GET", "/healthz")
LARGE_FIELDS = b"".join(b"A%d: %s\r\n" % (number, b"a" * 8000) for number in range(95))


def answers(gateway: Watched) -> bool:
    return requests.get(f"{gateway.url}/healthz", timeout=HTTP_SECONDS).status_code == 200


@pytest.fixture(scope="module")
def gateway(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with watched_gateway(stack, tmp_path_factory.mktemp("connections")) as opened:
        yield opened


def test_unfinished_heads_are_refused_and_leave_memory_flat(gateway: Watched) -> None:
    """95 fields of 8 KB each, and no end; gunicorn alone takes a hundred."""

    async def story() -> tuple[Counter[int], int]:
        before = await asyncio.to_thread(gateway.memory)
        strangers = [await Stranger.connected(gateway, source=source) for source in networks(500)]
        for stranger in strangers:
            stranger.send(b"GET / HTTP/1.1\r\nHost: x\r\n" + LARGE_FIELDS)
        statuses = Counter(await asyncio.gather(*(stranger.status() for stranger in strangers)))
        grown = await asyncio.to_thread(gateway.memory) - before
        assert await asyncio.to_thread(answers, gateway)
        for stranger in strangers:
            stranger.close()
        return statuses, grown

    statuses, grown = asyncio.run(story())
    assert set(statuses) <= {431, CLOSED}
    assert grown < 60 * MIB


@pytest.mark.parametrize(
    ("size", "status"), [(HEAD_MAX_BYTES - 1000, 200), (HEAD_MAX_BYTES + 1000, 431)], ids=["within", "beyond"]
)
@pytest.mark.parametrize("pieces", [1, 40])
def test_the_whole_head_has_a_bound(gateway: Watched, size: int, status: int, pieces: int) -> None:
    fields = "".join(f"A{number}: {'a' * 2000}\r\n" for number in range(size // 2000))
    fields += f"B: {'b' * (size - len(fields))}\r\n"
    request = f"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{fields}\r\n".encode()

    async def story() -> int:
        stranger = await Stranger.connected(gateway)
        step = -(-len(request) // pieces)
        for start in range(0, len(request), step):
            stranger.send(request[start : start + step])
            await asyncio.sleep(0.01)
        found = await stranger.status()
        stranger.close()
        return found

    assert asyncio.run(story()) == status


# -- a gateway that keeps few connections, and waits two seconds for clients that do not read

UNREAD_SECONDS = 2
DOCUMENT = head("GET", "/api/v1/openapi.json")


@pytest.fixture(scope="module")
def small(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Watched, Path]]:
    """The gateway, and the folder of its log."""
    folder = tmp_path_factory.mktemp("small")
    settings = {
        "FIATGATE_GATEWAY_CONNECTIONS": "64",
        "FIATGATE_GATEWAY_UNREAD_SECONDS": str(UNREAD_SECONDS),
    }
    with watched_gateway(stack, folder, **settings) as opened:
        yield opened, folder


def test_idle_connections_make_room_for_those_that_ask(small: tuple[Watched, Path]) -> None:
    gateway, folder = small

    async def story() -> None:
        idle = [await Stranger.connected(gateway, source=source) for source in networks(150)]
        asks = await Stranger.connected(gateway)
        asks.send(ALIVE)
        assert await asks.status() == 200
        assert all(await asyncio.gather(*(stranger.is_closed(5) for stranger in idle[:80])))
        assert not await idle[-1].is_closed(0.2), "the longest idle go first"
        kind = {"wall": "connections", "kind": "idle, in all"}
        dropped = await asyncio.to_thread(gateway.counted, "fiatgate_turned_away_total", **kind)
        assert 150 - 64 <= dropped <= 150 - 64 + 5
        assert await asyncio.to_thread(gateway.counted, "fiatgate_http_connections") <= 64
        for stranger in [asks, *idle]:
            stranger.close()

    asyncio.run(story())
    assert '"connections_dropped"' in (folder / "gateway.log").read_text()


async def unread(gateway: Watched, count: int) -> list[Stranger]:
    """So many clients of their own networks that ask again and again, and never read."""
    opened = [
        await Stranger.connected(gateway, source=source, buffer_bytes=4096) for source in networks(count)
    ]
    for stranger in opened:
        stranger.send(DOCUMENT * 20)
    return opened


async def answered(gateway: Watched) -> Stranger:
    """Returns a client that has its answer.

    It connects again until it is answered: a connection makes room only when its own requests are answered and its
    client does not read.
    """
    async with asyncio.timeout(30):
        while True:
            asks = await Stranger.connected(gateway)
            asks.send(ALIVE)
            if await asks.status() == 200:
                return asks
            asks.close()
            await asyncio.sleep(0.1)


def test_clients_that_never_read_make_room_for_those_that_ask(small: tuple[Watched, Path]) -> None:
    gateway, _ = small

    async def story() -> None:
        before = await asyncio.to_thread(gateway.memory)
        silent = await unread(gateway, 100)
        asks = await answered(gateway)
        assert await asyncio.to_thread(gateway.memory) - before < 20 * MIB
        for stranger in [asks, *silent]:
            stranger.close()

    asyncio.run(story())


def test_a_client_that_never_reads_loses_its_connection(small: tuple[Watched, Path]) -> None:
    gateway, _ = small
    kind = {"wall": "connections", "kind": "unread"}

    async def story() -> None:
        before = gateway.counted("fiatgate_turned_away_total", **kind)
        silent = await unread(gateway, 10)
        await asyncio.to_thread(
            wait_until,
            lambda: gateway.counted("fiatgate_turned_away_total", **kind) == before + 10,
            "the ten to be given up",
            timeout_seconds=30,
        )
        for stranger in silent:
            stranger.close()

    asyncio.run(story())


def test_a_client_that_reads_slowly_gets_all_of_its_answers(small: tuple[Watched, Path]) -> None:
    """Its answers take longer than an unread one may: 40 KiB a second, and 512 bytes are enough."""
    gateway, _ = small
    size = len(requests.get(f"{gateway.url}/api/v1/openapi.json", timeout=HTTP_SECONDS).content)
    wanted = -(-(UNREAD_SECONDS + 1) * 40_960 // size) * size

    async def story() -> int:
        slow = await Stranger.connected(gateway, buffer_bytes=16_384)
        slow.send(DOCUMENT * (wanted // size))
        found = await slow.read(wanted, at_once=4096, every_seconds=0.1)
        slow.close()
        return found

    assert asyncio.run(story()) >= wanted


def test_requests_whose_answers_are_not_read_are_not_taken_until_they_are_read(gateway: Watched) -> None:
    """Answers without a body grew what waits to be read without a bound."""
    flood = head("HEAD", "/healthz") * 20_000

    async def story() -> None:
        stranger = await Stranger.connected(gateway, buffer_bytes=4096)
        sent, still = 0, 0
        while sent < len(flood) and still < 10:
            await asyncio.sleep(0.1)
            taken = stranger.send(flood[sent : sent + 65_536])
            sent, still = sent + taken, 0 if taken else still + 1
        assert sent < len(flood)
        async with asyncio.timeout(ANSWER_SECONDS):
            while not stranger.send(flood[sent : sent + 65_536]):
                assert await stranger.read(1, at_once=4096, every_seconds=0.001)
        stranger.close()

    asyncio.run(story())


def test_few_requests_of_one_client_are_taken_before_they_are_answered(gateway: Watched) -> None:
    """Each answer let another piece of the socket in: one client's requests grew without a bound."""
    many = ALIVE * (MIB // len(ALIVE))

    async def story() -> int:
        client = await Stranger.connected(gateway, buffer_bytes=16 * 1024)
        sent = answered = 0
        async with asyncio.timeout(ANSWER_SECONDS):
            while answered < 200:
                sent += client.send(many[sent % len(ALIVE) :])
                answered += (await client.received()).count(b"HTTP/1.1 200")
        client.close()
        return sent - answered * len(ALIVE)

    assert asyncio.run(story()) < 256 * 1024


def test_one_network_takes_the_connections_of_no_other(stack: Stack, tmp_path: Path) -> None:
    greedy, modest = networks(2)

    async def story(gateway: Watched) -> None:
        quiet = await Stranger.connected(gateway, source=modest)
        quiet.send(ALIVE)
        assert await quiet.status() == 200
        many = [await Stranger.connected(gateway, source=greedy) for _ in range(40)]
        assert all(await asyncio.gather(*(stranger.is_closed(5) for stranger in many[:24])))
        assert not await quiet.is_closed(0.2)
        many[-1].send(ALIVE)
        assert await many[-1].status() == 200
        for stranger in [quiet, *many]:
            stranger.close()

    with watched_gateway(stack, tmp_path, FIATGATE_GATEWAY_CONNECTIONS_PER_CLIENT="16") as gateway:
        asyncio.run(story(gateway))


@contextmanager
def few_files(count: int) -> Iterator[None]:
    """What is started in the block has so low a soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def many_files(count: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, count), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_idle_connections_than_the_soft_limit_of_files_stop_nobody(stack: Stack, tmp_path: Path) -> None:
    async def story(gateway: Watched) -> None:
        idle = [await Stranger.connected(gateway, source=source) for source in networks(600)]
        assert await asyncio.to_thread(answers, gateway)
        assert not await idle[0].is_closed(0.2), "there is room for all of them"
        for stranger in idle:
            stranger.close()

    with few_files(256):
        opened = watched_gateway(stack, tmp_path)
        gateway = opened.__enter__()
    try:
        with many_files(2000):
            asyncio.run(story(gateway))
    finally:
        opened.__exit__(None, None, None)


def test_many_connections_may_wait_to_be_taken(gateway: Watched) -> None:
    """Else the first packets of a burst are dropped, and each client of it waits a second."""
    bind = "{}:{}".format(*gateway.address)
    ours = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # another test's, which ends just now
            if "gateway" in process.cmdline() and process.environ()["FIATGATE_GATEWAY_BIND"] == bind:
                ours.append(process)
    assert ours

    async def burst() -> list[Stranger]:
        async with asyncio.timeout(5):
            return await asyncio.gather(*(Stranger.connected(gateway) for _ in range(300)))

    for process in ours:
        process.suspend()
    try:
        strangers = asyncio.run(burst())
    finally:
        for process in ours:
            process.resume()
    for stranger in strangers:
        stranger.close()
