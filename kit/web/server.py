"""gunicorn with its own asgi worker, configured from the settings of the process.

Each worker process loads the application after the fork (no preload): gRPC channels and loops don't survive a fork.
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from gunicorn import glogging
from gunicorn.app.base import BaseApplication
from gunicorn.workers import gasgi

from kit.observe import log
from kit.observe.log import get_logger
from kit.web.config import WebSettings, clients_of
from kit.web.edge import Edge
from kit.web.protocol import SOCKET_BUFFER_BYTES, SOCKET_BUFFER_FOR_ANSWERS_BYTES, BrokenHttp, Connection
from kit.web.walls.connections import Connections, room_for

# Longer than the longest request (a picture from an old telephone), so that a stop interrupts none.
GRACEFUL_SECONDS: Final = 75
# A name of 128 four-byte characters in a path, percent-encoded, takes 1536 bytes of it.
REQUEST_LINE_MAX_BYTES: Final = 8190
HEAD_FIELDS_MAX: Final = 100
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


class Worker(gasgi.ASGIWorker):  # type: ignore[misc]
    """gunicorn's asgi worker with `Connection`, which gunicorn takes from a global of its module."""

    _has_backlog = False

    def init_process(self) -> None:
        gasgi.ASGIProtocol = Connection
        settings: WebSettings = self.app.settings
        self.broken_http = self.app.site.broken_http
        self.connections = Connections(
            clients_of(settings),
            most=room_for(settings.connections),
            most_per_client=settings.connections_per_client,
        )
        self.unread_seconds = settings.unread_seconds
        super().init_process()

    def notify(self) -> None:
        """Called at once when the worker listens, and then each second."""
        super().notify()
        if self.servers and not self._has_backlog:
            self._has_backlog = True
            for listener in self.sockets:
                listener.sock.listen(BACKLOG)

    def run(self) -> None:
        for listener in self.sockets:  # connections inherit the options
            listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
            listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_FOR_ANSWERS_BYTES)
        self.loop.run_until_complete(self._wait_until_ready())
        super().run()  # from here on it takes connections

    async def _wait_until_ready(self) -> None:
        """Waits at most `start_seconds`: without a service that stays away, most of a site still works."""
        site: Site = self.app.site
        at_most_seconds: int = self.app.settings.start_seconds
        give_up_at = self.loop.time() + at_most_seconds
        has_logged = False
        while self.alive and self.loop.time() < give_up_at and not await site.is_ready():
            self.notify()  # or gunicorn would kill it as a worker that hangs
            if not has_logged:
                _log.info("services_awaited", at_most_seconds=at_most_seconds)
                has_logged = True

    async def _shutdown(self) -> None:
        # gunicorn waits for every connection to end, for idle ones too: one open browser, or the proxy in front,
        # would delay each stop by all of GRACEFUL_SECONDS. Connections with a request close after it. The method is
        # private: no public one is called for each way in which a worker ends.
        for server in self.servers:
            server.close()
        for connection in self.connections.all():
            connection.close_if_idle()
        if isinstance(self.asgi, Edge):  # gunicorn sets another one when `load` failed
            self.asgi.stop()  # ends the streams of open pages, which would delay the stop as well
        await super()._shutdown()


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
        "asgi_loop": "uvloop",
        "asgi_lifespan": "on",
        "preload_app": False,
        "keepalive": settings.keepalive_seconds,
        "graceful_timeout": GRACEFUL_SECONDS,
        "limit_request_line": REQUEST_LINE_MAX_BYTES,
        "limit_request_fields": HEAD_FIELDS_MAX,
        "control_socket_disable": True,
        "proc_name": f"fiatgate-{settings.service}",
        "loglevel": settings.log_level,
        "logger_class": Log,
    }
