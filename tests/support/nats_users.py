"""Connections of users of NATS, past kit.events.bus: of processes that were taken over, and of strangers."""

import asyncio
from collections.abc import Awaitable, Callable

import nats.aio.client

from kit.events.subjects import STREAM
from tests.support.servers import NatsServer

Client = nats.aio.client.Client


def refusals(server: NatsServer, user: str, act: Callable[[Client], Awaitable[object]]) -> list[str]:
    """What the server refuses to a user who does this."""
    refused: list[str] = []

    async def note(error: Exception) -> None:
        refused.append(str(error))

    async def run() -> None:
        client = await nats.connect(
            server.url_of(user), inbox_prefix=f"_INBOX.{user}", error_cb=note, allow_reconnect=False
        )
        await act(client)
        await client.flush()  # its ping overtakes what is sent
        await client.flush()  # the answer to this one comes after every refusal
        await client.close()

    asyncio.run(run())
    return refused


def stored(server: NatsServer) -> int:
    """How many messages the stream has. Raises when there is no stream."""

    async def ask() -> int:
        client = await nats.connect(server.url)
        try:
            info = await client.jetstream().stream_info(STREAM)
        finally:
            await client.close()
        return int(info.state.messages)

    return asyncio.run(ask())


def consumers(server: NatsServer) -> set[str]:
    """The stream's consumers, by name."""

    async def ask() -> set[str]:
        client = await nats.connect(server.url)
        try:
            return {each.name for each in await client.jsm().consumers_info(STREAM)}
        finally:
            await client.close()

    return asyncio.run(ask())
