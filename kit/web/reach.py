"""Whether all services can be reached: a worker checks this before it takes its first connection.

A probe is answered by any one of a server's workers and counts for all of them; so a worker takes no connection before
it can answer. Where services are found by name and start together with the server, their names may not resolve yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack

from kit.base import tls
from kit.rpc.client import aio_channel

TRY_SECONDS = 1.0


async def can_reach_all(addresses: Mapping[str, str], identity: tls.Identity | None) -> bool:
    """Returns whether each service takes a connection within `TRY_SECONDS`. Call it inside the running loop. It
    opens channels of its own: a channel that did not resolve a name tries again after ever longer pauses.

    addresses  by the name of the service
    """
    async with AsyncExitStack() as opened:
        channels = [
            await opened.enter_async_context(aio_channel(address, name=name, identity=identity))
            for name, address in addresses.items()
        ]
        try:
            async with asyncio.timeout(TRY_SECONDS):
                await asyncio.gather(*(each.channel_ready() for each in channels))
        except TimeoutError:
            return False
    return True
