"""A client's connection: gunicorn's, with our answers to broken HTTP and our bounds.

gunicorn answers a request that it can't parse by itself, in plain text, long before any application could. The methods
replaced here are private to gunicorn; tests/gateway sends what each of them is for, so an upgrade that renames one is
noticed.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import json
import socket
import termios
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any, Final

from gunicorn.asgi.parser import LimitRequestHeaders
from gunicorn.asgi.protocol import ASGIProtocol

from gateway.counting import count_broken
from gateway.problems import BodyFault, body_envelope, envelope
from kit import request_id
from kit.log import get_logger

# From the connection to the end of its first request head.
FIRST_HEAD_SECONDS: Final = 10
# Of one head, with its request line. Browsers send a few KiB; gunicorn alone would take 100 fields of 8 KiB each.
HEAD_MAX_BYTES: Final = 16 * 1024
# Bytes of a body that wait for a resource to ask for them; with more, the connection is not read from.
HELD_MAX_BYTES: Final = 16 * 1024
# The loop takes all at once that has arrived at a socket, long before a resource can refuse it: so that is little,
# until one asks for a body. Then more may be on its way, or a picture from far away would take minutes.
SOCKET_BUFFER_BYTES: Final = 16 * 1024
SOCKET_BUFFER_FOR_BODY_BYTES: Final = 256 * 1024
# How long a connection whose other half is closed waits for a next request: what was sent is read by then.
NOTHING_MORE_COMES_SECONDS: Final = 0.001
# Of answers that wait to be read: so much is kept here, and so much in the socket (Linux doubles it), before the
# connection takes no further request.
UNREAD_MAX_BYTES: Final = 16 * 1024
SOCKET_BUFFER_FOR_ANSWERS_BYTES: Final = 64 * 1024
# A client that reads less than this, measured over the setting's seconds, is given up.
LEAST_BYTES_READ_PER_SECOND: Final = 512

_log = get_logger()


class EnvelopeProtocol(ASGIProtocol):  # type: ignore[misc]  # gunicorn ships no types
    """One connection. `worker.connections` keeps it (gateway.walls.connections)."""

    _answered: Any = None  # the body receiver of the request whose answer has begun
    _is_idle = False
    _reading: asyncio.TimerHandle | None = None  # set while the client has to read before anything goes on
    _unread_bytes = 0  # when that timer was set

    def __init__(self, worker: Any) -> None:
        super().__init__(worker)
        self._max_buffer_size = HELD_MAX_BYTES
        self._is_widened = False
        self._head_bytes = 0

    # -- from its beginning to its end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(high=UNREAD_MAX_BYTES)
        # gunicorn's own timer runs between requests only: a client that never ends its first head would stay for ever.
        self._keepalive_handle = self.worker.loop.call_later(FIRST_HEAD_SECONDS, self._keepalive_timeout)
        peer = transport.get_extra_info("peername")
        self.worker.connections.opened(self, peer[0] if isinstance(peer, tuple) else "")

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_watching()
        self._flow_control.resume_writing()  # what waits for the client to read goes on, and ends
        self.worker.connections.closed(self)

    @property
    def _awaiting_request(self) -> bool:
        """Set by gunicorn, when the connection waits for a request and when one has come."""
        return self._is_idle

    @_awaiting_request.setter
    def _awaiting_request(self, is_idle: bool) -> None:
        self._is_idle = is_idle
        self._may_make_room()

    def _may_make_room(self) -> None:
        """Keeps the bound informed: a connection may be dropped while it has no request or its client does not read."""
        if self._is_idle or self._reading is not None:
            self.worker.connections.waits(self)
        else:
            self.worker.connections.works(self)

    def eof_received(self) -> bool:
        """A client may end what it sends and still wait for the answer, as `nc -N` does: it gets that, then the end.

        A client that leaves in the middle of a request, or of an answer (a page that follows its payment), has gone.
        """
        receiver = self._body_receiver
        waits = receiver is not None and receiver._complete and receiver is not self._answered
        if waits:
            self._keepalive = NOTHING_MORE_COMES_SECONDS
        return waits

    def close_if_idle(self) -> None:
        """Hang up on a client that keeps its connection for a next request, as its timeout would."""
        if self._is_idle:
            self._keepalive_timeout()

    def drop(self) -> None:
        """Ends it at once, to make room for another one."""
        self._closed = True
        self._request_ready.set()
        self.transport.abort()

    def _close_transport(self) -> None:
        """The client may read its answer to the end, under the same watch."""
        super()._close_transport()
        if self.transport.get_write_buffer_size():
            self._watch()

    # -- how fast the client reads

    def pause_writing(self) -> None:
        """Called when more than UNREAD_MAX_BYTES wait here."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self._closed:
            self._stop_watching()
            self._may_make_room()

    async def _serve_http_request(self, *args: Any) -> Any:
        """Begins with a request when the answers before it are read, or it would grow them without a bound."""
        await self._flow_control.drain()
        return False if self._closed else await super()._serve_http_request(*args)

    def _watch(self) -> None:
        """From now on the client has to read."""
        if self._reading is None and not self._conn_lost_handled:
            self._look_again()
            self._may_make_room()

    def _look_again(self) -> None:
        self._unread_bytes = self._all_unread_bytes()
        seconds = self.worker.unread_seconds
        self._reading = self.worker.loop.call_later(seconds, self._has_read, seconds)

    def _has_read(self, seconds: int) -> None:
        """Ends the connection whose client has read too little since the last look."""
        if self._unread_bytes - self._all_unread_bytes() < seconds * LEAST_BYTES_READ_PER_SECOND:
            self._reading = None
            self.worker.connections.ended(self, "unread")
            self.drop()
            return
        self.worker.connections.works(self)  # it is the last again of those that may be dropped
        self._look_again()
        self._may_make_room()

    def _stop_watching(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _all_unread_bytes(self) -> int:
        """Those that wait here, and those in the socket that the client's system has not acknowledged.

        The socket takes what waits here in large pieces: without its own, a client that reads slowly would seem to read
        nothing for a long time.
        """
        in_socket = array.array("i", [0])
        try:
            fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, in_socket)
        except OSError:  # a system that does not count them
            in_socket[0] = 0
        waiting: int = self.transport.get_write_buffer_size()
        return waiting + in_socket[0]

    # -- what arrives

    def _feed_callback_parser(self, data: bytes) -> bool:
        in_head = self._current_request is None
        # Not parsed at all, where that can be seen before: parsing takes milliseconds.
        if in_head and self._head_bytes + len(data) > HEAD_MAX_BYTES and b"\r\n\r\n" not in data:
            self._refuse(431, "The head of the request is too large")
            return False
        try:
            goes_on: bool = super()._feed_callback_parser(data)
        except ValueError as error:  # a Content-Length of more digits than Python reads
            self._refuse(400, str(error))
            return False
        if not in_head or not goes_on:
            return goes_on
        if self._current_request is not None:
            self._head_bytes = 0
            return True
        self._head_bytes += len(data)
        return True

    def _on_headers_complete(self) -> Any:
        """The same bound, of a head that has arrived in one piece."""
        parser = self._callback_parser
        size = len(parser.path) + sum(len(name) + len(value) for name, value in parser.headers)
        if size > HEAD_MAX_BYTES:
            raise LimitRequestHeaders("The head of the request is too large")
        return super()._on_headers_complete()

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

    def _is_websocket_upgrade(self, request: Any) -> bool:
        """Never: an Upgrade that a server doesn't know is ignored (RFC 9110 section 7.8), and HTTP goes on."""
        return False

    # -- what is answered

    def _send_response_start(self, *args: Any, **kwargs: Any) -> None:
        self._answered = self._body_receiver
        super()._send_response_start(*args, **kwargs)

    def _get_reason_phrase(self, status: int) -> str:
        return HTTPStatus(status).phrase

    def _refuse(self, status: int, message: str) -> None:
        self._send_error_response(status, message)
        self._close_transport()

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
