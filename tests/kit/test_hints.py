"""Hints as a process with an event loop receives them (kit/events/hints.py)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from structlog.testing import capture_logs

from kit.events.bus.messages import HINT_MOST_BYTES
from kit.events.hints import Hints
from tests.kit.consuming import counted
from tests.support.servers import NatsServer


async def _published(hints: Hints, subject: str, data: bytes) -> None:
    """Publishes on the connection of the receiver, after its subscriptions."""
    await _until(lambda: hints.connected and not hints._tasks)
    await hints._client.publish(subject, data)


def test_hints_resume_when_nats_is_back(nats_server: NatsServer) -> None:
    async def story() -> None:
        subject, received = "fiatgate-hint.x", list[bytes]()
        async with Hints(nats_server.url, name="one") as hints:
            hints.on_hint(subject, lambda _, data: received.append(data))
            await _until(lambda: hints.connected)
            nats_server.kill()
            await _until(lambda: not hints.connected)
            nats_server.start()
            await _until(lambda: hints.connected)
            await _published(hints, subject, b"1")
            await _until(lambda: received == [b"1"])

    asyncio.run(story())


def test_a_listener_that_has_stopped_receives_no_more(nats_server: NatsServer) -> None:
    async def story() -> None:
        subject, left, stays = "fiatgate-hint.x", list[bytes](), list[bytes]()
        async with Hints(nats_server.url, name="one") as hints:
            stop = hints.on_hint(subject, lambda _, data: left.append(data))
            hints.on_hint("fiatgate-hint.*", lambda _, data: stays.append(data))
            await _published(hints, subject, b"1")
            await _until(lambda: (left, stays) == ([b"1"], [b"1"]))
            stop()
            await _until(lambda: not hints._tasks)
            await _published(hints, subject, b"2")
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
            for data in (b"1", b"2"):
                await _published(hints, subject, data)
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
            for size in (1 << 20, HINT_MOST_BYTES + 1, HINT_MOST_BYTES):
                await _published(hints, subject, b"x" * size)
            await _until(lambda: HINT_MOST_BYTES in heard)
        assert heard == [HINT_MOST_BYTES]

    before = counted("nats_hints_dropped_total")
    asyncio.run(story())
    assert counted("nats_hints_dropped_total") == before + 2


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110  nothing rings when a counter in another object moves
            await asyncio.sleep(0.02)
