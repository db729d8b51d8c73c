"""Durable consumers of tests, made as the stream's owner makes those of the services."""

from kit.events.bus.connection import Bus
from kit.events.bus.pull import Pull
from kit.events.bus.stream import STREAM_TIMEOUT_SECONDS, keep_consumer


def make_consumer(bus: Bus, durable: str, subject: str) -> None:
    """`bus` may do everything on NATS, and the stream is there. Its owner also makes the consumer again."""

    async def make() -> None:
        if bus._stream is not None:
            bus._stream._consumers[durable] = subject
        await keep_consumer(bus._client.jsm(timeout=STREAM_TIMEOUT_SECONDS), durable, subject)

    bus._loop.call(make, timeout_seconds=2 * STREAM_TIMEOUT_SECONDS)


def open_pull(bus: Bus, durable: str, subject: str) -> Pull:
    make_consumer(bus, durable, subject)
    return bus.open_pull(durable)
