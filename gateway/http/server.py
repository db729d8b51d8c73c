"""gunicorn with its own asgi worker, configured from the gateway's settings.

Each worker process loads the application after the fork (no preload): gRPC channels and loops don't survive a fork.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any, Final

from gunicorn import glogging
from gunicorn.app.base import BaseApplication
from gunicorn.workers import gasgi

from gateway.config import GatewaySettings, clients_of
from gateway.http.edge import Edge
from gateway.http.protocol import SOCKET_BUFFER_BYTES, SOCKET_BUFFER_FOR_ANSWERS_BYTES, EnvelopeProtocol
from gateway.http.reach import can_reach_all
from gateway.walls.connections import Connections, room_for
from kit.observe import log
from kit.observe.log import get_logger

# Longer than the longest request (a picture from an old telephone), so that a stop interrupts none.
GRACEFUL_SECONDS: Final = 75
REQUEST_LINE_MAX_BYTES: Final = 8190
HEAD_FIELDS_MAX: Final = 100
# Connections that wait to be accepted. The loop's own default is 100: beyond it, a client's first packet is dropped,
# and the client tries again a second later.
BACKLOG: Final = 2048

_log = get_logger()


class Worker(gasgi.ASGIWorker):  # type: ignore[misc]
    """gunicorn's asgi worker with `EnvelopeProtocol`, which gunicorn takes from a global of its module."""

    _has_backlog = False

    def init_process(self) -> None:
        gasgi.ASGIProtocol = EnvelopeProtocol
        settings: GatewaySettings = self.app.settings
        self.connections = Connections(
            clients_of(settings),
            most=room_for(settings.gateway_connections),
            most_per_client=settings.gateway_connections_per_client,
        )
        self.unread_seconds = settings.gateway_unread_seconds
        super().init_process()

    def notify(self) -> None:
        """Called at once when the worker listens, and then each second."""
        super().notify()
        if self.servers and not self._has_backlog:
            self._has_backlog = True
            for listener in self.sockets:
                listener.sock.listen(BACKLOG)

    async def _serve(self) -> None:
        for listener in self.sockets:  # connections inherit the options
            listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
            listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SOCKET_BUFFER_FOR_ANSWERS_BYTES)
        await self._until_the_services_are_there()
        await super()._serve()  # from here on it takes connections

    async def _until_the_services_are_there(self) -> None:
        """See `gateway.http.reach`. Waits at most `gateway_start_seconds` for a service that stays away: most of
        the API works without it.
        """
        settings: GatewaySettings = self.app.settings
        give_up_at = self.loop.time() + settings.gateway_start_seconds
        told = False
        while self.alive and self.loop.time() < give_up_at and not await can_reach_all(settings):
            self.notify()  # or gunicorn would kill it as a worker that hangs
            if not told:
                _log.info("services_awaited", at_most_seconds=settings.gateway_start_seconds)
                told = True

    async def _shutdown(self) -> None:
        # gunicorn waits for every connection to end, for idle ones too: one open browser, or the proxy in front,
        # would delay each stop by all of GRACEFUL_SECONDS. Connections with a request close after it.
        for server in self.servers:
            server.close()
        for connection in self.connections.all():
            connection.close_if_idle()
        if isinstance(self.asgi, Edge):  # gunicorn sets another one when `load` failed
            self.asgi.stop()  # ends the streams of open pages, which would delay the stop as well
        await super()._shutdown()


class Log(glogging.Logger):  # type: ignore[misc]
    """Writes gunicorn's log lines to the gateway's log, in its form (kit.observe.log)."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class Server(BaseApplication):  # type: ignore[misc]
    """The gunicorn application; `load` runs in each worker."""

    def __init__(self, settings: GatewaySettings, load: Callable[[], Any]) -> None:
        self.settings = settings
        self._load = load
        super().__init__()

    def load_config(self) -> None:
        for name, value in options(self.settings).items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        log.configure(self.settings.service, self.settings)
        return self._load()


def options(settings: GatewaySettings) -> dict[str, Any]:
    """gunicorn's settings; all others keep gunicorn's defaults."""
    return {
        "bind": settings.gateway_bind,
        "workers": settings.gateway_workers,
        "worker_class": Worker,
        "asgi_loop": "uvloop",
        "asgi_lifespan": "on",
        "preload_app": False,
        "keepalive": settings.gateway_keepalive_seconds,
        "graceful_timeout": GRACEFUL_SECONDS,
        # An external_id of 128 four-byte characters, percent-encoded, takes 1536 bytes of it.
        "limit_request_line": REQUEST_LINE_MAX_BYTES,
        "limit_request_fields": HEAD_FIELDS_MAX,
        "control_socket_disable": True,
        "proc_name": "fiatgate-gateway",
        "loglevel": settings.log_level,
        "logger_class": Log,
    }
