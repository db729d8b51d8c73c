"""TCP connections that can be cut, held, and robbed of their answers.

Our own, and small, after a look around: toxiproxy is a Go program and not on PyPI, HAProxy and socat come from a
distribution that the user's machine need not have, and the proxies on PyPI (pproxy, proxy.py) tunnel and filter but
neither reset nor hold a connection on demand. mitmproxy could, and wants a cryptography of two years ago, which is a
part of the product: tests don't choose that.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from deploy.local.ports import free_ports

CHUNK_BYTES = 64 * 1024


class Proxy:
    """One loopback port; each connection to it is joined to one to `upstream()`, a port asked for at first use."""

    def __init__(self, upstream: Callable[[], int]) -> None:
        self.port = free_ports(1)[0]
        self._listener = socket.create_server(("127.0.0.1", self.port))  # nobody takes it meanwhile
        self._upstream = upstream
        self._flows = asyncio.Event()
        self._flows.set()
        self._loses_answers = False
        self._open: set[asyncio.StreamWriter] = set()

    async def listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._join, sock=self._listener)

    def cut(self) -> None:
        """Reset every connection; new ones are welcome."""
        self._loses_answers = False
        for writer in self._open:
            writer.transport.abort()

    def hold(self) -> None:
        """Move nothing until `flow`; new connections are accepted and hear nothing either."""
        self._flows.clear()

    def flow(self) -> None:
        self._flows.set()

    def lose_answers(self) -> None:
        """Carry on what is asked and nothing of what is answered, until `cut`: done, and nobody learns of it."""
        self._loses_answers = True

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        try:
            port = await asyncio.to_thread(self._upstream)
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:  # it is being restarted: the client sees what it would have seen without us
            self._close(writer)
            return
        self._open.add(far_writer)
        await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer, answers=True))
        self._close(writer)
        self._close(far_writer)

    async def _pump(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, answers: bool = False
    ) -> None:
        with suppress(OSError):
            while data := await reader.read(CHUNK_BYTES):
                await self._flows.wait()
                if answers and self._loses_answers:
                    continue
                writer.write(data)
                await writer.drain()
        with suppress(OSError, RuntimeError):
            writer.write_eof()

    def _close(self, writer: asyncio.StreamWriter) -> None:
        self._open.discard(writer)
        writer.transport.abort()


class Proxies:
    """All proxies of a stack, on a loop in a thread of its own. Use as a context manager."""

    def __init__(self, upstreams: dict[str, Callable[[], int]]) -> None:
        self._loop = asyncio.new_event_loop()
        self._proxies = {name: Proxy(upstream) for name, upstream in upstreams.items()}
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        for proxy in self._proxies.values():
            self._servers.append(asyncio.run_coroutine_threadsafe(proxy.listen(), self._loop).result(10))
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def port(self, name: str) -> int:
        return self._proxies[name].port

    def cut(self, name: str) -> None:
        self._loop.call_soon_threadsafe(self._proxies[name].cut)

    def hold(self, name: str) -> None:
        self._loop.call_soon_threadsafe(self._proxies[name].hold)

    def flow(self, name: str) -> None:
        self._loop.call_soon_threadsafe(self._proxies[name].flow)

    def lose_answers(self, name: str) -> None:
        self._loop.call_soon_threadsafe(self._proxies[name].lose_answers)

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        for proxy in self._proxies.values():
            proxy.cut()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
