"""uvicorn serves HTTP. With several processes gunicorn starts, watches and replaces them.

Each process loads the application after the fork (no preload): gRPC channels and loops don't survive a fork.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import Any, Final

import uvicorn
from gunicorn import glogging
from gunicorn.app.base import BaseApplication
from gunicorn.arbiter import Arbiter
from gunicorn.workers import base

from kit.observe.log import get_logger
from kit.process.memory import settle_memory
from kit.web.config import WebSettings
from kit.web.edge import Edge

# Longer than the longest request (a picture from an old telephone), so that a stop interrupts none.
GRACEFUL_SECONDS: Final = 75
# At a stop, connections have this long for one more request, which is answered with `Connection: close`: it may be on
# the way already. Then the idle ones are closed.
LINGER_SECONDS: Final = 2.0
DRAIN_CHECK_SECONDS: Final = 0.1
NOTIFY_SECONDS: Final = 5
SILENT_SECONDS: Final = 30
"""gunicorn kills a worker that it has not heard of for this time, beyond the time of its start."""
CONNECTIONS_MAX: Final = 4096
"""Connections of one process; requests above it get 503."""
SPARE_FILES: Final = 128
"""Files of a process besides clients' connections: logs, channels to the services, metrics."""
BACKLOG: Final = 2048
"""Connections that wait to be accepted. Beyond it a client's first packet is dropped."""

_log = get_logger()


@dataclass(frozen=True, kw_only=True)
class Site:
    """The site that a process serves; each worker calls these for itself.

    edge      makes the ASGI application
    is_ready  whether the worker can serve yet: it takes no connection before that (`kit.web.reach`)
    """

    edge: Callable[[], Edge]
    is_ready: Callable[[], Awaitable[bool]]


def serve(settings: WebSettings, site: Site) -> None:
    """Serves until SIGTERM or SIGINT."""
    _allow_open_files()
    if settings.workers > 1:
        _Gunicorn(settings, site).run()
        return
    for each in (signal.SIGTERM, signal.SIGINT):  # uvicorn raises the signal again after its graceful stop
        signal.signal(each, lambda *_: sys.exit(0))
    _Server(settings, site).run()


class _Server(uvicorn.Server):
    """Takes connections once the services are reachable; a stop loses no request."""

    def __init__(
        self, settings: WebSettings, site: Site, notify: Callable[[], Awaitable[None]] | None = None
    ) -> None:
        self._settings = settings
        self._site = site
        self._edge = site.edge()
        host, _, port = settings.bind.rpartition(":")
        super().__init__(
            uvicorn.Config(
                self._edge,
                host=host.strip("[]"),
                port=int(port),
                loop="uvloop",
                http="httptools",
                ws="none",
                lifespan="on",
                interface="asgi3",
                log_config=None,  # its lines go to the log of the process
                log_level="warning",
                access_log=False,
                proxy_headers=False,  # `kit.web.edge` reads the client's address
                server_header=False,
                backlog=BACKLOG,
                limit_concurrency=CONNECTIONS_MAX,
                timeout_keep_alive=settings.keepalive_seconds,
                timeout_graceful_shutdown=GRACEFUL_SECONDS,
                callback_notify=notify,
                timeout_notify=NOTIFY_SECONDS,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Waits at most `start_seconds` for the services: without one that stays away, most of a site still works."""
        at_most_seconds = self._settings.start_seconds
        loop = asyncio.get_running_loop()
        give_up_at = loop.time() + at_most_seconds
        has_logged = False
        while not self.should_exit and loop.time() < give_up_at and not await self._site.is_ready():
            if not has_logged:
                _log.info("services_awaited", at_most_seconds=at_most_seconds)
                has_logged = True
        if not self.should_exit:
            await super().startup(sockets)
            settle_memory()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for each in self.servers:
            each.close()
        self._edge.stop()
        loop = asyncio.get_running_loop()
        until = loop.time() + LINGER_SECONDS
        # uvicorn signals no closed connection; its own shutdown looks as often.
        while self.server_state.connections and loop.time() < until and not self.force_exit:  # noqa: ASYNC110
            await asyncio.sleep(DRAIN_CHECK_SECONDS)
        await super().shutdown(sockets)


class _Worker(base.Worker):  # type: ignore[misc]  # gunicorn ships no types
    """A worker process of gunicorn. gunicorn signals it once: a stop that comes while it starts must not be lost."""

    _server: _Server | None = None

    def run(self) -> None:
        signal.set_wakeup_fd(-1)  # gunicorn's own; the loop has one
        self._server = server = self.wsgi(notify=self._notify)  # what `_Gunicorn.load` returned
        if not self.alive:
            server.should_exit = True
        server.run(self.sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        if self._server is not None:
            self._server.should_exit = True

    async def _notify(self) -> None:
        self.notify()
        if self._server is not None and os.getppid() != self.ppid:
            self._server.should_exit = True


def _takes_signals(arbiter: Arbiter, worker: _Worker) -> None:
    """Runs in a new worker: the signals that came since the fork are in the copy of gunicorn's queue."""
    signal.signal(signal.SIGTERM, worker.handle_exit)
    while not arbiter.SIG_QUEUE.empty():
        if arbiter.SIG_QUEUE.get_nowait() == signal.SIGTERM:
            worker.alive = False


class _Log(glogging.Logger):  # type: ignore[misc]
    """Writes gunicorn's log lines to the log of the process, in its form (kit.observe.log)."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class _Gunicorn(BaseApplication):  # type: ignore[misc]
    """The gunicorn application; `load` runs in each worker."""

    def __init__(self, settings: WebSettings, site: Site) -> None:
        self._settings = settings
        self._site = site
        super().__init__()

    def load_config(self) -> None:
        options = {
            "bind": self._settings.bind,
            "workers": self._settings.workers,
            "worker_class": _Worker,
            "backlog": BACKLOG,
            "graceful_timeout": GRACEFUL_SECONDS,
            "timeout": self._settings.start_seconds + SILENT_SECONDS,
            "control_socket_disable": True,
            "proc_name": f"fiatgate-{self._settings.service}",
            "loglevel": self._settings.log_level,
            "logger_class": _Log,
            "post_fork": _takes_signals,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Callable[..., _Server]:
        return partial(_Server, self._settings, self._site)


def _allow_open_files() -> None:
    """Raises the soft limit of open files: many systems start processes with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS_MAX + SPARE_FILES
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
