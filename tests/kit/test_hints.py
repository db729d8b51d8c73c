"""Hints as a process with an event loop receives them (kit/events/hints.py)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from structlog.testing import capture_logs

from kit.events.bus.messages import HINT_MOST_BYTES
from kit.events.hints import Hints
from tests.kit.consuming import counted
from tests.support.servers import NatsServer

SUBJECT: Final = "fiatgate-hint.x"


async def _publish(hints: Hints, data: bytes) -> None:
    """Publishes on the connection of the receiver, after its subscriptions."""
    await hints._client.publish(SUBJECT, data)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  nothing rings when a counter in another object moves
            await asyncio.sleep(0.02)


@asynccontextmanager
async def _connected(server: NatsServer) -> AsyncIterator[Hints]:
    async with Hints(server.url, name="one") as hints:
        await _until(lambda: hints.connected)
        yield hints


def test_hints_resume_when_nats_is_back(nats_server: NatsServer) -> None:
    received: list[bytes] = []

    async def story() -> None:
        async with (
            Hints(nats_server.url, name="one") as hints,
            hints.listening(SUBJECT, lambda _, data: received.append(data)),
        ):
            await _until(lambda: all(entry.subscription for entry in hints._entries))
            nats_server.kill()
            await _until(lambda: not hints.connected)
            nats_server.start()
            await _until(lambda: hints.connected)
            await _publish(hints, b"1")
            await _until(lambda: received == [b"1"])

    asyncio.run(story())


def test_a_listener_that_has_stopped_receives_no_more(nats_server: NatsServer) -> None:
    left, stays = list[bytes](), list[bytes]()

    async def story() -> None:
        async with (
            _connected(nats_server) as hints,
            hints.listening("fiatgate-hint.*", lambda _, data: stays.append(data)),
        ):
            async with hints.listening(SUBJECT, lambda _, data: left.append(data)):
                await _publish(hints, b"1")
                await _until(lambda: (left, stays) == ([b"1"], [b"1"]))
            await _publish(hints, b"2")
            await _until(lambda: stays == [b"1", b"2"])
            assert left == [b"1"]

    asyncio.run(story())


def test_a_listener_that_fails_ends_neither_the_others_nor_itself(nats_server: NatsServer) -> None:
    failed, received = list[bytes](), list[bytes]()

    def fails(_: str, data: bytes) -> None:
        failed.append(data)
        raise ValueError("a mistake")

    async def story() -> None:
        async with (
            _connected(nats_server) as hints,
            hints.listening(SUBJECT, fails),
            hints.listening(SUBJECT, lambda _, data: received.append(data)),
        ):
            for data in (b"1", b"2"):
                await _publish(hints, data)
            await _until(lambda: (failed, received) == ([b"1", b"2"], [b"1", b"2"]))

    with capture_logs() as logs:
        asyncio.run(story())
    assert [line["subject"] for line in logs if line["event"] == "hint_failed"] == [SUBJECT] * 2


def test_a_hint_larger_than_those_of_our_processes_is_dropped_unread_and_counted(
    nats_server: NatsServer,
) -> None:
    received: list[int] = []

    async def story() -> None:
        async with (
            _connected(nats_server) as hints,
            hints.listening(SUBJECT, lambda _, data: received.append(len(data))),
        ):
            for size in (1 << 20, HINT_MOST_BYTES + 1, HINT_MOST_BYTES):
                await _publish(hints, b"x" * size)
            await _until(lambda: HINT_MOST_BYTES in received)

    before = counted("nats_hints_dropped_total")
    asyncio.run(story())
    assert received == [HINT_MOST_BYTES]
    assert counted("nats_hints_dropped_total") == before + 2
