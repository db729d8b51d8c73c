"""The embedded NATS: JetStream on disk, the same address after a restart."""

from __future__ import annotations

import asyncio

import nats

from tests.support.servers import NatsServer


async def _publish(url: str) -> None:
    client = await nats.connect(url)
    stream = client.jetstream()
    await stream.add_stream(name="KEPT", subjects=["kept.>"])
    await stream.publish("kept.one", b"still here")
    await client.close()


async def _last(url: str) -> bytes | None:
    client = await nats.connect(url)
    message = await client.jetstream().get_last_msg("KEPT", "kept.one")
    await client.close()
    return message.data


def test_an_acknowledged_message_survives_a_kill(nats_server: NatsServer) -> None:
    asyncio.run(_publish(nats_server.url))
    nats_server.kill()
    nats_server.start()
    assert asyncio.run(_last(nats_server.url)) == b"still here"
