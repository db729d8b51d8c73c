"""A client's connection: gunicorn's, with the site's own answers to broken HTTP and Fiatgate's bounds.

gunicorn itself answers a request that it can't parse, in plain text, before any application runs. Public means of
gunicorn, asyncio or ASGI are used where they have the same effect. For each private member a comment says why it is
needed. tests/gateway tests the effect of each, so an upgrade that renames one is noticed.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import socket
import termios
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final

from gunicorn.asgi.parser import LimitRequestHeaders
from gunicorn.asgi.protocol import ASGIProtocol

from kit.base import request_id
from kit.observe.log import get_logger
from kit.web.counting import count_broken

# From the connection to the end of its first request head.
FIRST_HEAD_SECONDS: Final = 10
# For one head, with its request line. Browsers send a few KiB; gunicorn alone would accept 100 fields of 8 KiB each.
HEAD_MAX_BYTES: Final = 16 * 1024
# Bytes of a body that wait for a resource to read them; above this, the connection is not read.
HELD_MAX_BYTES: Final = 8 * 1024
# The loop reads everything that has arrived at a socket, long before a resource can refuse it. So the buffer is small
# until a resource reads the body. Then it is larger, or a picture from far away would take minutes.
SOCKET_BUFFER_BYTES: Final = 8 * 1024
SOCKET_BUFFER_FOR_BODY_BYTES: Final = 256 * 1024
# Time that a half-closed connection waits for a next request: everything that the client sent is read by then.
NOTHING_MORE_COMES_SECONDS: Final = 0.001
# Bounds of unread answers: bytes that are kept here, and bytes in the socket (Linux doubles them). Beyond them the
# connection takes no further request.
UNREAD_MAX_BYTES: Final = 16 * 1024
SOCKET_BUFFER_FOR_ANSWERS_BYTES: Final = 64 * 1024
# A client that reads less than this, measured over the setting's seconds, is dropped.
LEAST_BYTES_READ_PER_SECOND: Final = 512

_log = get_logger()


@dataclass(frozen=True)
class Content:
    """The body of an answer."""

    media_type: str
    body: bytes


Receive = Callable[[], Any]  # of ASGI
Send = Callable[[dict[str, Any]], Any]

BrokenHttp = Callable[[int, str, str], Content]
"""Returns the answer to bytes that are no HTTP request: from a status, a message about the fault, and a request id."""


class Connection(ASGIProtocol):  # type: ignore[misc]  # gunicorn ships no types
    """One connection. `worker.connections` keeps it (walls.connections), `worker.broken_http` makes its answers."""

    _is_idle = True  # it waits for a request, or for the rest of its head
    _is_answering = False  # the answer to the request has begun
    _is_lost = False
    _is_widened = False
    _head_bytes = 0
    _reading: asyncio.TimerHandle | None = None  # set while the connection waits for the client to read
    _unread_bytes = 0  # at the time when that timer was set

    def __init__(self, worker: Any) -> None:
        super().__init__(worker)
        self._max_buffer_size = HELD_MAX_BYTES  # gunicorn has no setting for it
        self._is_read = asyncio.Event()  # few enough bytes wait to be sent
        self._is_read.set()
        self._site: Any = worker.asgi
        self.app = self._serve

    # -- from its beginning to its end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(high=UNREAD_MAX_BYTES)
        # gunicorn's own timer runs between requests only: a client that never ends its first head would stay. Kept as
        # gunicorn's, the timer is cancelled by the first request.
        self._keepalive_handle = self.worker.loop.call_later(FIRST_HEAD_SECONDS, self._keepalive_timeout)
        peer = transport.get_extra_info("peername")
        self.worker.connections.opened(self, peer[0] if isinstance(peer, tuple) else "")
        self._may_make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_lost = True
        super().connection_lost(exc)
        self._stop_watching()
        self._resume_writers()
        self.worker.connections.closed(self)

    async def _serve(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Serves one request with the application, once the client has read the answers before it: unread answers would
        grow without a bound.
        """
        await self._is_read.wait()
        if self._closed:
            raise asyncio.CancelledError  # by which gunicorn knows a client that has gone

        async def receive_widened() -> Any:
            if scope["method"] == "POST" and not self._is_answering:  # later the rest is only dropped
                self._widen()
            return await receive()

        async def send_noted(message: dict[str, Any]) -> None:
            self._is_answering = True
            await send(message)

        try:
            await self._site(scope, receive_widened, send_noted)
        finally:
            self._is_idle = True
            self._may_make_room()

    def _may_make_room(self) -> None:
        """Updates `connections`: one may be dropped while it has no request or its client does not read."""
        if self._is_idle or self._reading is not None:
            self.worker.connections.waits(self)
        else:
            self.worker.connections.works(self)

    def eof_received(self) -> bool:
        """Returns whether the connection stays open: a client may half-close it and still wait for the answer, as
        `nc -N` does.

        A client that leaves in the middle of a request, or of an answer (a page that follows its payment), has gone.
        """
        receiver = self._body_receiver  # the only place that knows whether all of a request has come
        waits = receiver is not None and receiver._complete and not self._is_answering
        if waits:
            self._keepalive = NOTHING_MORE_COMES_SECONDS  # gunicorn's setting, for this connection
        return waits

    def close_if_idle(self) -> None:
        """Closes the connection if it only waits for a next request, as its timeout would."""
        if self._is_idle:
            self._keepalive_timeout()  # `transport.close` alone would leave gunicorn's task for seconds

    def drop(self) -> None:
        """Ends it at once, to make room for another connection."""
        self._closed = True  # these two end gunicorn's task now: many connections may be dropped in a second
        self._request_ready.set()
        self.transport.abort()

    def _close_transport(self) -> None:
        """Closes the connection once the client has read its answer. A client that reads too slowly is dropped as
        before. gunicorn calls no public method for each way in which it closes a connection.
        """
        super()._close_transport()
        if self.transport.get_write_buffer_size():
            self._watch()

    # -- how fast the client reads

    def pause_writing(self) -> None:
        """Starts to watch the client's reading. Called when more than UNREAD_MAX_BYTES wait to be sent."""
        super().pause_writing()
        self._is_read.clear()
        self._watch()

    def resume_writing(self) -> None:
        self._resume_writers()
        if not self._closed:
            self._stop_watching()
            self._may_make_room()

    def _resume_writers(self) -> None:
        """Lets go on all that waits for the client to read; it ends when the client has gone."""
        super().resume_writing()
        self._is_read.set()

    def _watch(self) -> None:
        """Starts to measure how fast the client reads."""
        if self._reading is None and not self._is_lost:
            self._measure_unread()
            self._may_make_room()

    def _measure_unread(self) -> None:
        """Notes how many bytes are unread now, to compare with after `unread_seconds`."""
        self._unread_bytes = self._all_unread_bytes()
        seconds = self.worker.unread_seconds
        self._reading = self.worker.loop.call_later(seconds, self._has_read, seconds)

    def _has_read(self, seconds: int) -> None:
        """Ends the connection if its client has read too little since the last check."""
        if self._unread_bytes - self._all_unread_bytes() < seconds * LEAST_BYTES_READ_PER_SECOND:
            self._reading = None
            self.worker.connections.ended(self, "unread")
            self.drop()
            return
        self.worker.connections.works(self)  # it becomes the last of those that may be dropped
        self._measure_unread()
        self._may_make_room()

    def _stop_watching(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _all_unread_bytes(self) -> int:
        """Returns the number of bytes that wait in this process, and in the socket until the client's system
        acknowledges them.

        The socket takes bytes from here in large pieces: without the socket's own count, a client that reads slowly
        would seem to read nothing for a long time.
        """
        in_socket = array.array("i", [0])
        try:
            fcntl.ioctl(self.transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, in_socket)
        except OSError:  # the system does not count them
            in_socket[0] = 0
        waiting: int = self.transport.get_write_buffer_size()
        return waiting + in_socket[0]

    # -- arriving data

    def _feed_callback_parser(self, data: bytes) -> bool:
        """Bounds a head before it is parsed. `data_received` is not enough: a request that came together with the one
        before it reaches the parser here.
        """
        in_head = self._current_request is None
        # A head that is visibly too large is not parsed: parsing takes milliseconds.
        if in_head and self._head_bytes + len(data) > HEAD_MAX_BYTES and b"\r\n\r\n" not in data:
            self._refuse(431, "The head of the request is too large")
            return False
        try:
            goes_on: bool = super()._feed_callback_parser(data)
        except ValueError as error:  # a Content-Length with more digits than Python accepts
            self._refuse(400, str(error))
            return False
        self._resume_reading()  # gunicorn fed what it had kept: it may be too little for a request
        if not in_head or not goes_on:
            return goes_on
        if self._current_request is not None:
            self._head_bytes = 0
            return True
        self._head_bytes += len(data)
        return True

    def _resume_reading(self) -> None:
        """Reads on only when few enough bytes are kept. gunicorn itself calls this after each answer, however many
        requests of the client wait here: each answer would let more of them in.
        """
        if not self._is_buffer_full():
            super()._resume_reading()

    def _on_headers_complete(self) -> Any:
        """Checks the same bound for a head that arrived in one piece: before the application runs, where gunicorn
        refuses heads itself.
        """
        self._is_idle = self._is_answering = False
        self._may_make_room()
        parser = self._callback_parser
        size = len(parser.path) + sum(len(name) + len(value) for name, value in parser.headers)
        if size > HEAD_MAX_BYTES:
            raise LimitRequestHeaders("The head of the request is too large")
        return super()._on_headers_complete()

    def _on_body(self, chunk: bytes) -> None:
        """Drops a body that no resource reads, as it comes: only a POST has a body. After this method it is kept."""
        if self._current_request.method == "POST":
            super()._on_body(chunk)

    def _widen(self) -> None:
        """Makes the socket's buffer larger, for the body that a resource reads now."""
        if not self._is_widened and not self._is_lost:
            self._is_widened = True
            connection = self.transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_FOR_BODY_BYTES)

    def _is_websocket_upgrade(self, request: Any) -> bool:
        """Always false: an unknown Upgrade is ignored (RFC 9110 section 7.8), and HTTP goes on. gunicorn has no setting
        for it.
        """
        return False

    # -- answers

    def _refuse(self, status: int, message: str) -> None:
        self._send_error_response(status, message)
        self._close_transport()

    def _send_error_response(
        self, status: int, message: str, extra_headers: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Answers in the form of the site; gunicorn has no setting for it."""
        id = request_id.new()
        content: Content = self.worker.broken_http(status, message, id)
        headers = {
            "Content-Type": content.media_type,
            "Content-Length": str(len(content.body)),
            "X-Request-Id": id,
            **dict(extra_headers),
            "Connection": "close",
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        reason = HTTPStatus(status).phrase
        if not self.transport.is_closing():
            self.transport.write(f"HTTP/1.1 {status} {reason}\r\n{head}\r\n".encode("latin-1") + content.body)
        count_broken(status)
        _log.info("request_malformed", status=status, detail=message[:200], request_id=id)
