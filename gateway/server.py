"""gunicorn with its own asgi worker, set up from our settings; and its answers to broken HTTP in our words.

Each worker process loads the application after the fork (no preload): gRPC channels and loops don't survive one.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final

from gunicorn import glogging
from gunicorn.app.base import BaseApplication
from gunicorn.asgi.protocol import ASGIProtocol
from gunicorn.workers import gasgi

from gateway.config import GatewaySettings
from gateway.counting import count_broken
from gateway.edge import Edge
from gateway.problems import BodyFault, body_envelope, envelope
from gateway.reach import can_reach_all
from kit import log, request_id
from kit.log import get_logger

# Longer than the longest request (a picture from an old telephone), so that a stop cuts nothing off.
GRACEFUL_SECONDS: Final = 75
# From the connection to the end of its first request head.
FIRST_HEAD_SECONDS: Final = 10
REQUEST_LINE_MAX_BYTES: Final = 8190
# Bytes of a body that wait for a resource to ask for them; with more, the connection is not read from.
HELD_MAX_BYTES: Final = 64 * 1024
# The loop takes all at once that has arrived at a socket, long before a resource can refuse it: so that is little,
# until one asks for a body. Then more may be on its way, or a picture from far away would take minutes.
SOCKET_BUFFER_BYTES: Final = 16 * 1024
SOCKET_BUFFER_FOR_BODY_BYTES: Final = 256 * 1024
# How long a connection whose other half is closed waits for a next request: what was sent is read by then.
NOTHING_MORE_COMES_SECONDS: Final = 0.001

_log = get_logger()


class EnvelopeProtocol(ASGIProtocol):  # type: ignore[misc]  # gunicorn ships no types
    """A connection whose parser's complaints have the documented shape too.

    gunicorn answers a request it can't parse by itself, in plain text, long before any application could. This one
    method writes all of those answers; tests/gateway/test_server.py sends such requests, so an upgrade that renames
    it is noticed.
    """

    _answered: Any = None  # the body receiver of the request whose answer has begun

    def __init__(self, worker: Any) -> None:
        super().__init__(worker)
        self._max_buffer_size = HELD_MAX_BYTES
        self._is_widened = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.worker.connections.add(self)
        super().connection_made(transport)
        # gunicorn's own timer runs between requests only: a client that never ends its first head would stay for
        # ever.
        self._keepalive_handle = self.worker.loop.call_later(FIRST_HEAD_SECONDS, self._keepalive_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.worker.connections.discard(self)

    def _on_body(self, chunk: bytes) -> None:
        """Throws away what no resource asks for, as it comes: only a POST takes a body."""
        if self._current_request.method == "POST":
            super()._on_body(chunk)

    def _maybe_resume_reading(self) -> None:
        """Called when a piece of the body is taken: by a resource, or, once the answer has begun, to be dropped."""
        if not self._is_widened and self._answered is not self._body_receiver:
            self._is_widened = True
            connection = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_FOR_BODY_BYTES)
        super()._maybe_resume_reading()

    def eof_received(self) -> bool:
        """A client may end what it sends and still wait for the answer, as `nc -N` does: it gets that, then the end.

        Who leaves in the middle of a request, or of an answer (a page that follows its payment), has gone.
        """
        receiver = self._body_receiver
        waits = receiver is not None and receiver._complete and receiver is not self._answered
        if waits:
            self._keepalive = NOTHING_MORE_COMES_SECONDS
        return waits

    def _send_response_start(self, *args: Any, **kwargs: Any) -> None:
        self._answered = self._body_receiver
        super()._send_response_start(*args, **kwargs)

    def close_if_idle(self) -> None:
        """Hang up on a client that keeps its connection for a next request, as its timeout would."""
        if self._awaiting_request:
            self._keepalive_timeout()

    def _is_websocket_upgrade(self, request: Any) -> bool:
        """Never: an Upgrade that a server doesn't know is ignored (RFC 9110 section 7.8), and HTTP goes on."""
        return False

    def _get_reason_phrase(self, status: int) -> str:
        return HTTPStatus(status).phrase

    def _send_error_response(
        self, status: int, message: str, extra_headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        id = request_id.new()
        body = json.dumps(_broken_http(status, message, id)).encode()
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "X-Request-Id": id,
            **dict(extra_headers),
            "Connection": "close",
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        reason = self._get_reason_phrase(status)
        self._safe_write(f"HTTP/1.1 {status} {reason}\r\n{head}\r\n".encode("latin-1") + body)
        count_broken(status)
        _log.info("request not understood", status=status, detail=message[:200], request_id=id)


def _broken_http(status: int, message: str, id: str) -> dict[str, Any]:
    if status in (413, 414, 431):
        return envelope(
            "PAYLOAD_TOO_LARGE", request_id=id, message="The request line or a header is too long"
        )
    if status < 500 or status == 501:
        return body_envelope([BodyFault(("request",), "http_invalid", message)], request_id=id)
    return envelope("INTERNAL_ERROR", request_id=id, metadata={"error_id": id})


class Worker(gasgi.ASGIWorker):  # type: ignore[misc]
    """gunicorn's asgi worker with that protocol, which it takes from a global of its module."""

    def init_process(self) -> None:
        gasgi.ASGIProtocol = EnvelopeProtocol
        self.connections: set[EnvelopeProtocol] = set()
        super().init_process()

    async def _serve(self) -> None:
        for listener in self.sockets:  # connections inherit it
            listener.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_BYTES)
        await self._until_the_services_are_there()
        await super()._serve()  # from here on it takes connections

    async def _until_the_services_are_there(self) -> None:
        """See `gateway.reach`. A service that stays away is waited for no longer than `start_seconds`: most of the
        API works without it.
        """
        settings: GatewaySettings = self.app.settings
        give_up_at = self.loop.time() + settings.gateway_start_seconds
        told = False
        while self.alive and self.loop.time() < give_up_at and not await can_reach_all(settings):
            self.notify()  # or gunicorn would take it for one that hangs
            if not told:
                _log.info("waiting for the services", at_most_seconds=settings.gateway_start_seconds)
                told = True

    async def _shutdown(self) -> None:
        # gunicorn waits for every connection to end, for idle ones too: one open browser, or the proxy in front,
        # would hold each stop up for all of GRACEFUL_SECONDS. Those that work on a request close after it.
        for server in self.servers:
            server.close()
        for connection in list(self.connections):
            connection.close_if_idle()
        if isinstance(self.asgi, Edge):  # it's another one when ours could not be made
            self.asgi.stop()  # ends the streams of open pages, which would hold it up as well
        await super()._shutdown()


class Log(glogging.Logger):  # type: ignore[misc]
    """What gunicorn tells of itself goes where our own lines go, in their form (kit.log)."""

    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class Server(BaseApplication):  # type: ignore[misc]
    """`load` runs in each worker."""

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
    """gunicorn's settings; what isn't here is as gunicorn has it."""
    return {
        "bind": settings.gateway_bind,
        "workers": settings.gateway_workers,
        "worker_class": Worker,
        "asgi_loop": "uvloop",
        "asgi_lifespan": "on",
        "preload_app": False,
        "keepalive": settings.gateway_keepalive_seconds,
        "graceful_timeout": GRACEFUL_SECONDS,
        # An external_id of 128 four-byte characters, percent-encoded, is 1536 bytes of it.
        "limit_request_line": REQUEST_LINE_MAX_BYTES,
        "control_socket_disable": True,
        "proc_name": "fiatgate-gateway",
        "loglevel": settings.log_level,
        "logger_class": Log,
    }
