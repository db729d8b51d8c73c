"""Names to addresses: each name is resolved once, and refused when any of its addresses isn't public."""

import asyncio
import socket
from collections.abc import Callable
from concurrent import futures
from typing import Any, Final

from aiohttp.abc import AbstractResolver, ResolveResult

from kit.egress.address import is_public

# Resolving a name blocks a thread, up to some ten seconds when its name servers don't answer. There are as many threads
# as any caller has calls under way: otherwise one merchant with many such names would delay the others. Threads are
# made when needed.
RESOLVER_THREADS: Final = 512

Lookup = Callable[[str, int], list[Any]]


class ForbiddenAddress(OSError):
    """An address that isn't public. An OSError, because aiohttp expects that of a resolver."""


class VettingResolver(AbstractResolver):
    """Resolves in threads of its own: a name server that doesn't answer must not block the event loop's pool."""

    def __init__(self, lookup: Lookup, threads: futures.ThreadPoolExecutor, *, allow_private: bool) -> None:
        self._lookup = lookup
        self._threads = threads
        self._allow_private = allow_private

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        loop = asyncio.get_running_loop()
        answers = await loop.run_in_executor(self._threads, self._lookup, host, port)
        if not answers:
            raise OSError(f"{host} has no address")
        # One forbidden address refuses the name: a name that is partly internal is an attack or a mistake.
        if not self._allow_private and not all(is_public(str(answer[4][0])) for answer in answers):
            raise ForbiddenAddress
        return [
            ResolveResult(
                hostname=host,
                host=str(answer[4][0]),
                port=port,
                family=answer[0],
                proto=answer[2],
                flags=socket.AI_NUMERICHOST,
            )
            for answer in answers
        ]

    async def close(self) -> None:
        pass


def getaddrinfo(host: str, port: int) -> list[Any]:
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
