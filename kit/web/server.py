"""gunicorn with a worker of our own, configured from the settings of the process.

gunicorn opens the sockets and starts, watches and replaces the worker processes; `kit.web.protocol` speaks HTTP.

Each worker process loads the application after the fork (no preload): gRPC channels and loops don't survive a fork.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any, Final

import uvloop
from gunicorn import glogging
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.workers import base

from kit.observe import log
from kit.observe.log import get_logger
from kit.process.forks import hold_stops, release_stops
from kit.process.memory import settle_memory
from kit.web.config import WebSettings, clients_of
from kit.web.edge import Edge
from kit.web.protocol import (
    SOCKET_BUFFER_BYTES,
    SOCKET_BUFFER_FOR_ANSWERS_BYTES,
    BrokenHttp,
    Connection,
    Serving,
)
from kit.web.walls.connections import Connections, room_for

# Longer than the longest request (a picture from an old telephone), so that a stop interrupts none.
GRACEFUL_SECONDS: Final = 75
DRAIN_CHECK_SECONDS: Final = 0.1
# A connection that has waited this long for its next request is closed at a stop. A client that sends more often gets
# one more answer, with `Connection: close`: its next request may be on the way already.
LINGER_SECONDS: Final = 2.0
# gunicorn kills a worker that it has not heard of for 30 seconds.
NOTIFY_SECONDS: Final = 1.0
# Connections that wait to be accepted. The loop's own default is 100: beyond it, a client's first packet is dropped,
# and the client tries again a second later.
BACKLOG: Final = 2048

_log = get_logger()


@dataclass(frozen=True, kw_only=True)
class Site:
    """The site that a process serves; each worker calls these for itself.

    edge         makes the ASGI application
    is_ready     whether the worker can serve yet: it takes no connection before that (`kit.web.reach`)
    broken_http  makes the answer to bytes that are no HTTP request
    """

    edge: Callable[[], Edge]
    is_ready: Callable[[], Awaitable[bool]]
    broken_http: BrokenHttp


class Worker(base.Worker):  # type: ignore[misc]  # gunicorn ships no types
    """A worker process of gunicorn, which serves with `Connection`."""

    _is_hasty = False

    def init_signals(self) -> None:
        super().init_signals()
        release_stops()

    def run(self) -> None:
        signal.set_wakeup_fd(-1)  # gunicorn's own; the loop has one
        for listener in self.sockets:  # connections inherit the options
            listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
            listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_FOR_ANSWERS_BYTES)
        uvloop.run(self._live())

    async def _live(self) -> None:
        self._stopping = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self._stop)
        for number in (signal.SIGINT, signal.SIGQUIT):
            loop.add_signal_handler(number, self._stop_hastily)
        await self._wait_until_ready()
        edge: Edge = self.wsgi  # gunicorn's name for what `Server.load` has made
        async with AsyncExitStack() as opened:
            try:
                await opened.enter_async_context(edge.opened())
            except Exception:  # noqa: BLE001  # whatever it is, this process can't serve
                _log.exception("start_failed")
                sys.exit(
                    Arbiter.WORKER_BOOT_ERROR
                )  # gunicorn ends; else it would start a worker again and again
            await self._serve(edge)

    async def _serve(self, edge: Edge) -> None:
        """Serves until the worker is stopped; then waits for the requests that are under way, and ends each connection
        after its next answer or when it is idle.
        """
        settings: WebSettings = self.app.settings
        connections = Connections(
            clients_of(settings),
            most=room_for(settings.connections),
            most_per_client=settings.connections_per_client,
        )
        serving = Serving(
            app=edge,
            broken_http=self.app.site.broken_http,
            connections=connections,
            keepalive_seconds=settings.keepalive_seconds,
            unread_seconds=settings.unread_seconds,
        )
        loop = asyncio.get_running_loop()
        servers = [
            await loop.create_server(lambda: Connection(serving), sock=each.sock, backlog=BACKLOG)
            for each in self.sockets
        ]
        settle_memory()
        while self.alive and self.ppid == os.getppid():
            self.notify()
            await self._stopped(NOTIFY_SECONDS)
        serving.is_stopping = True
        for server in servers:
            server.close()
        edge.stop()  # ends the streams of open pages
        give_up_at = loop.time() + GRACEFUL_SECONDS
        while (left := connections.all()) and loop.time() < give_up_at and not self._is_hasty:
            self.notify()
            for connection in left:
                connection.close_if_idle(LINGER_SECONDS)
            await asyncio.sleep(DRAIN_CHECK_SECONDS)

    def _stop(self) -> None:
        self.alive = False
        self._stopping.set()

    def _stop_hastily(self) -> None:
        self._is_hasty = True
        self._stop()

    async def _stopped(self, at_most_seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_seconds):
                await self._stopping.wait()

    async def _wait_until_ready(self) -> None:
        """Waits at most `start_seconds`: without a service that stays away, most of a site still works."""
        site: Site = self.app.site
        at_most_seconds: int = self.app.settings.start_seconds
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + at_most_seconds
        has_logged = False
        while self.alive and loop.time() < give_up_at and not await site.is_ready():
            self.notify()  # or gunicorn would kill it as a worker that hangs
            if not has_logged:
                _log.info("services_awaited", at_most_seconds=at_most_seconds)
                has_logged = True


class Log(glogging.Logger):  # type: ignore[misc]
    """Writes gunicorn's log lines to the log of the process, in its form (kit.observe.log)."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class Server(BaseApplication):  # type: ignore[misc]
    """The gunicorn application; `load` runs in each worker."""

    def __init__(self, settings: WebSettings, site: Site) -> None:
        self.settings = settings
        self.site = site
        super().__init__()

    def run(self) -> None:
        hold_stops()
        super().run()

    def load_config(self) -> None:
        for name, value in options(self.settings).items():
            self.cfg.set(name, value)

    def load(self) -> Edge:
        log.configure(self.settings.service, self.settings)
        return self.site.edge()


def options(settings: WebSettings) -> dict[str, Any]:
    """Returns gunicorn's settings; all others keep gunicorn's defaults."""
    return {
        "bind": settings.bind,
        "workers": settings.workers,
        "worker_class": Worker,
        "preload_app": False,
        "graceful_timeout": GRACEFUL_SECONDS,
        "control_socket_disable": True,
        "proc_name": f"fiatgate-{settings.service}",
        "loglevel": settings.log_level,
        "logger_class": Log,
    }
