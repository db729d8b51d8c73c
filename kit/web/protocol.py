"""A client's connection: its bytes become requests (`kit.web.http1`), one at a time, each answered by the application.

All bounds of a connection are here: time for a first head and between requests, bytes that wait to be read, answers
that the client does not read. docs/security.md lists them.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import socket
import termios
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final

from kit.base import request_id
from kit.observe.log import get_logger
from kit.web.asgi import Address, Request
from kit.web.counting import count_broken
from kit.web.http1 import Head, Malformed, Parser
from kit.web.walls.connections import Connections

# From the connection to the end of its first request head.
FIRST_HEAD_SECONDS: Final = 10
# Bytes that wait here: of a body until a resource reads them, of requests behind the one that is answered. Above this,
# the connection is not read.
HELD_MAX_BYTES: Final = 8 * 1024
# The loop reads everything that has arrived at a socket, long before a resource can refuse it. So the buffer is small
# until a resource reads the body. Then it is larger, or a picture from far away would take minutes.
SOCKET_BUFFER_BYTES: Final = 8 * 1024
SOCKET_BUFFER_FOR_BODY_BYTES: Final = 256 * 1024
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


BrokenHttp = Callable[[int, str, str], Content]
"""Returns the answer to bytes that are no HTTP request: from a status, a message about the fault, and a request id."""


@dataclass(kw_only=True)
class Serving:
    """Shared by all connections of a worker.

    app                the ASGI application
    keepalive_seconds  time that a connection stays open without a request
    unread_seconds     time after which a client that reads too little is dropped
    is_stopping        answers end their connections
    """

    app: Callable[..., Any]
    broken_http: BrokenHttp
    connections: Connections
    keepalive_seconds: int
    unread_seconds: int
    is_stopping: bool = False


class Connection(asyncio.Protocol):
    """One connection."""

    client: Address = None
    server: Address = None
    _transport: Any  # asyncio.Transport
    _request: Request | None = (
        None  # the one that is being answered; without it the connection waits for a head
    )
    _task: asyncio.Task[None] | None = None
    _unparsed = b""  # what came behind that request
    _is_closed = False  # by this side
    _is_half_closed = False  # the client sends no more
    _is_paused = False  # the socket is not read
    _is_widened = False
    _reading: asyncio.TimerHandle | None = None  # set while the connection waits for the client to read
    _unread_bytes = 0  # at the time when that timer was set

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._loop = asyncio.get_running_loop()
        self._parser = Parser(self)
        self._is_read = asyncio.Event()  # few enough bytes wait to be sent
        self._is_read.set()
        self._idle_since = self._loop.time()
        self._idle_until = self._idle_since + FIRST_HEAD_SECONDS
        self._idle_timer = self._loop.call_later(FIRST_HEAD_SECONDS, self._end_if_idle)

    # -- from its beginning to its end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._transport.set_write_buffer_limits(high=UNREAD_MAX_BYTES)
        self.client = _address(transport.get_extra_info("peername"))
        self.server = _address(transport.get_extra_info("sockname"))
        self._serving.connections.opened(self, self.client[0] if self.client else "")
        self._may_make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closed = True
        self._idle_timer.cancel()
        self._stop_watching()
        self._is_read.set()
        if self._request is not None:
            self._request.hang_up()
        # Ends the cycles of references: garbage is collected rarely, and each connection would stay until then.
        self._request = None
        self._parser.close()
        self._serving.connections.closed(self)

    def eof_received(self) -> bool:
        """Returns whether the connection stays open: a client may half-close it and still wait for the answer, as
        `nc -N` does.

        A client that leaves in the middle of a request, or of an answer (a page that follows its payment), has gone.
        """
        request = self._request
        self._is_half_closed = request is not None and request.is_whole and not request.is_begun
        return self._is_half_closed

    def close_if_idle(self, for_seconds: float) -> None:
        """Closes the connection if it has waited that long for a next request, as its timeout would."""
        if self._request is None and self._loop.time() - self._idle_since >= for_seconds:
            self._close()

    def drop(self) -> None:
        """Ends it at once, to make room for another connection."""
        self._is_closed = True
        self._transport.abort()

    def stays_open(self) -> bool:
        return self._serving.keepalive_seconds > 0 and not self._serving.is_stopping

    def _close(self) -> None:
        """Closes the connection once the client has read its answer. A client that reads too slowly is dropped."""
        self._is_closed = True
        if self._request is not None:
            self._request.hang_up()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self._watch()

    def _end_if_idle(self) -> None:
        """Closes the connection when its time without a request is over. One timer serves all requests: to set and
        cancel one for each costs more than to set it again here.
        """
        wait = self._idle_until - self._loop.time()
        if self._request is not None:  # then it waits for the next one for at least all of its time
            wait = max(self._serving.keepalive_seconds, FIRST_HEAD_SECONDS)
        elif wait <= 0:
            self._close()
            return
        self._idle_timer = self._loop.call_later(wait, self._end_if_idle)

    def _may_make_room(self) -> None:
        """Updates `connections`: one may be dropped while it has no request or its client does not read."""
        if self._request is None or self._reading is not None:
            self._serving.connections.waits(self)
        else:
            self._serving.connections.works(self)

    # -- requests

    def data_received(self, data: bytes) -> None:
        if self._is_closed:
            return
        if self._request is not None and self._request.is_whole:
            self._unparsed += data
        else:
            self._parse(data)
        self._pause_or_resume()

    def _parse(self, data: bytes) -> None:
        try:
            self._unparsed = self._parser.feed(data)
        except Malformed as fault:
            self._refuse(fault)

    def on_head(self, head: Head) -> None:
        self._request = Request(head, self)
        self._may_make_room()
        self._task = self._loop.create_task(self._serve(self._request))

    def on_body(self, piece: bytes) -> None:
        if self._request is not None:
            self._request.feed(piece)

    def on_end(self) -> None:
        if self._request is not None:
            self._request.end()

    async def _serve(self, request: Request) -> None:
        """Serves one request with the application, once the client has read the answers before it: unread answers would
        grow without a bound.
        """
        await self._is_read.wait()
        if self._is_closed:
            return
        try:
            await self._serving.app(request.scope(), request.receive, request.send)
        except Exception:  # noqa: BLE001  # of a request: the process goes on
            _log.exception("request_failed", path=request.path)
            if not request.is_begun:
                self._answer_broken(500, "Internal Server Error")
        self._end_request(request)

    def _end_request(self, request: Request) -> None:
        """Goes on to the next request; ends the connection where none can follow. The process may have begun to stop
        since the head of the answer; the rest of a body that has not come would be read as a request.
        """
        if self._is_closed:
            return
        if request.is_last or not (request.is_answered and request.is_whole and self.stays_open()):
            self._close()
            return
        self._request = None
        if self._unparsed:
            self._parse(self._unparsed)
        if self._request is None and not self._is_closed:
            if self._is_half_closed:
                self._close()
                return
            self._idle_since = self._loop.time()
            self._idle_until = self._idle_since + self._serving.keepalive_seconds
            self._may_make_room()
        self._pause_or_resume()

    # -- bytes

    def write(self, data: bytes) -> None:
        if not self._is_closed:
            self._transport.write(data)

    async def written(self) -> None:
        await self._is_read.wait()

    def wants_body(self) -> None:
        """Makes the socket's buffer larger, for the body that a resource reads now."""
        if not self._is_widened and self._request is not None and self._request.head.method == "POST":
            self._is_widened = True
            connection = self._transport.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SOCKET_BUFFER_FOR_BODY_BYTES)

    def took_body(self) -> None:
        self._pause_or_resume()

    def _pause_or_resume(self) -> None:
        """Reads the socket only while few enough bytes wait here."""
        held = len(self._unparsed) + (self._request.held_bytes if self._request is not None else 0)
        if self._is_closed or (held > HELD_MAX_BYTES) == self._is_paused:
            return
        self._is_paused = not self._is_paused
        if self._is_paused:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _refuse(self, fault: Malformed) -> None:
        """Ends the connection. An answer that has begun is not continued by another one."""
        if self._request is None or not self._request.is_begun:
            self._answer_broken(fault.status, str(fault))
        self._close()

    def _answer_broken(self, status: int, message: str) -> None:
        """Answers in the form of the site: no resource has seen the request."""
        id = request_id.new()
        content = self._serving.broken_http(status, message, id)
        head = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {content.media_type}\r\n"
            f"Content-Length: {len(content.body)}\r\nCache-Control: no-store\r\nDate: {formatdate(usegmt=True)}\r\n"
            f"X-Request-Id: {id}\r\nConnection: close\r\n\r\n"
        )
        self.write(head.encode() + content.body)
        count_broken(status)
        _log.info("request_malformed", status=status, detail=message[:200], request_id=id)

    # -- how fast the client reads

    def pause_writing(self) -> None:
        """Starts to watch the client's reading. Called when more than UNREAD_MAX_BYTES wait to be sent."""
        self._is_read.clear()
        self._watch()

    def resume_writing(self) -> None:
        self._is_read.set()
        if not self._is_closed:
            self._stop_watching()
            self._may_make_room()

    def _watch(self) -> None:
        """Starts to measure how fast the client reads."""
        if self._reading is None:
            self._measure_unread()
            self._may_make_room()

    def _measure_unread(self) -> None:
        """Notes how many bytes are unread now, to compare with after `unread_seconds`."""
        self._unread_bytes = self._all_unread_bytes()
        seconds = self._serving.unread_seconds
        self._reading = self._loop.call_later(seconds, self._has_read, seconds)

    def _has_read(self, seconds: int) -> None:
        """Ends the connection if its client has read too little since the last check."""
        if self._unread_bytes - self._all_unread_bytes() < seconds * LEAST_BYTES_READ_PER_SECOND:
            self._reading = None
            self._serving.connections.ended(self, "unread")
            self.drop()
            return
        self._serving.connections.works(self)  # it becomes the last of those that may be dropped
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
            fcntl.ioctl(self._transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, in_socket)
        except OSError:  # the system does not count them
            in_socket[0] = 0
        waiting: int = self._transport.get_write_buffer_size()
        return waiting + in_socket[0]


def _address(name: object) -> Address:
    """Returns host and port; None for a socket without them."""
    return (name[0], name[1]) if isinstance(name, tuple) else None
