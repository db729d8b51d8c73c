"""Whether all services can be reached: what a worker asks before it takes its first connection.

A probe is answered by one of a gateway's workers, whichever takes the connection, and speaks for all of them; so none
takes one before it's able to answer. Where services are looked up by name and start together with the gateway, their
names may not be there yet.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

from gateway.config import GatewaySettings
from gateway.wiring import addresses
from kit.rpc.client import aio_channel

TRY_SECONDS = 1.0


async def can_reach_all(settings: GatewaySettings) -> bool:
    """Whether each service takes a connection within `TRY_SECONDS`. Inside the running loop, over channels of its own:
    one that didn't find a name asks for it again later and later.
    """
    async with AsyncExitStack() as opened:
        channels = [
            await opened.enter_async_context(aio_channel(address, name=name, identity=settings.identity))
            for name, address in addresses(settings).items()
        ]
        try:
            async with asyncio.timeout(TRY_SECONDS):
                await asyncio.gather(*(each.channel_ready() for each in channels))
        except TimeoutError:
            return False
    return True
