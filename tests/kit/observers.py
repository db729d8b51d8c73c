"""Who sees whether a connection is made: a listener on every address of this machine, and the kernel's connects.

The listener waits on every address of the machine, v4 and v6, so that whatever means "this machine" ends there; an
audit hook sees each connect that Python attempts, so that addresses which aren't here (metadata services) are caught
as well.
"""

import asyncio
import contextlib
import socket
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from kit.egress.address import is_public

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]

_attempts: list[Any] = []
_watching = False


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and event == "socket.connect" and arguments[0].family in (socket.AF_INET, socket.AF_INET6):
        _attempts.append(arguments[1])
        # Tests must not call strangers: a public address is attempted, seen, and left alone.
        if is_public(arguments[1][0]):
            raise ConnectionRefusedError(111, "not in a test")


sys.addaudithook(_watch)


@contextmanager
def watching() -> Iterator[list[Any]]:
    """Addresses to which a connect was attempted meanwhile."""
    global _watching  # noqa: PLW0603  an audit hook can't be removed, only told to look away
    _attempts.clear()
    _watching = True
    try:
        yield _attempts
    finally:
        _watching = False


class Listener:
    """Accepts on every address of this machine, answers as `serve` does, counts."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.requests: list[bytes] = []


@asynccontextmanager
async def listening(
    answer: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    *,
    serve: Serve | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Listener]:
    listener = Listener()

    handlers: set[asyncio.Task[None]] = set()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        listener.connections += 1
        handler = asyncio.current_task()
        assert handler is not None
        handlers.add(handler)
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                listener.requests.append(await reader.readuntil(b"\r\n\r\n"))
                if serve is not None:
                    await serve(reader, writer)
                else:
                    writer.write(answer)
                    await writer.drain()
                writer.close()
                await writer.wait_closed()
        finally:
            writer.transport.abort()
            handlers.discard(handler)

    wildcard = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    listener.port = wildcard.getsockname()[1]
    server = await asyncio.start_server(accept, sock=wildcard, ssl=tls)
    try:
        yield listener
    finally:
        server.close()
        for handler in handlers:
            handler.cancel()
        await asyncio.gather(*handlers, return_exceptions=True)
