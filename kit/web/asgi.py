"""One request between the connection that it came by and the ASGI application that answers it."""

from __future__ import annotations

import asyncio
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, Protocol

from kit.base.clock import monotonic_seconds
from kit.web.http1 import Head

Message = dict[str, Any]
Scope = dict[str, Any]
Address = tuple[str, int] | None

_ASGI: Final = {"version": "3.0", "spec_version": "2.4"}
_WITHOUT_BODY: Final = frozenset({204, 304})


class Link(Protocol):
    """The connection of a request, as far as this module uses it."""

    client: Address
    server: Address

    def stays_open(self) -> bool:
        """Returns whether the connection may have another request, as far as this process decides it."""

    def write(self, data: bytes) -> None:
        """Sends the bytes, unless the connection ends."""

    async def written(self) -> None:
        """Waits until few enough bytes wait for the client to read them."""

    def wants_body(self) -> None:
        """Makes room for the body in the socket."""

    def took_body(self) -> None:
        """Reads on: the bytes that waited here are read."""


class Request:
    """is_whole     all of its body has arrived
    is_begun     the answer has begun
    is_answered  all of the answer is sent
    is_gone      the client has hung up; what is sent then is dropped
    is_last      the connection ends after the answer
    """

    def __init__(self, head: Head, link: Link) -> None:
        self.head = head
        self.raw_path, _, self._query = head.target.partition(b"?")
        self.is_whole = self.is_begun = self.is_answered = self.is_gone = False
        self.is_last = not head.keeps_alive
        self._link = link
        self._body = bytearray()
        self._has_given_end = False
        self._news: asyncio.Future[None] | None = None
        self._start: Message = {}
        self._is_chunked = False

    @property
    def path(self) -> str:
        """As it was sent, percent-encoded: resources decode it."""
        return self.raw_path.decode()

    def scope(self) -> Scope:
        head = self.head
        return {
            "type": "http",
            "asgi": _ASGI,
            "http_version": "1.0" if head.is_http_1_0 else "1.1",
            "method": head.method,
            "scheme": "http",
            "path": self.path,
            "raw_path": self.raw_path,
            "query_string": self._query,
            "root_path": "",
            "headers": head.headers,
            "server": self._link.server,
            "client": self._link.client,
        }

    # -- what the connection brings

    @property
    def held_bytes(self) -> int:
        return len(self._body)

    def feed(self, piece: bytes) -> None:
        """Keeps a piece of the body. Only a POST has a body that is read: another one is dropped as it comes."""
        if self.head.method == "POST":
            self._body += piece
            self._wake()

    def end(self) -> None:
        self.is_whole = True
        self._wake()

    def hang_up(self) -> None:
        self.is_gone = True
        self._wake()

    # -- what the application calls

    async def receive(self) -> Message:
        """Returns the next event of ASGI: bytes of the body, or that the client has hung up."""
        if not (self._body or self.is_whole or self.is_gone):
            await self._wait_for_body()
        while self._has_given_end and not self.is_gone:
            await self._wait()
        if self.is_gone:
            return {"type": "http.disconnect"}
        body = bytes(self._body)
        self._body.clear()
        self._has_given_end = self.is_whole
        self._link.took_body()
        return {"type": "http.request", "body": body, "more_body": not self.is_whole}

    async def send(self, message: Message) -> None:
        """Sends an event of ASGI. The head goes with the first piece of the body, in one write."""
        if self.is_gone:
            return
        if message["type"] == "http.response.start":
            self._start = message
            return
        body: bytes = message.get("body", b"")
        has_more: bool = message.get("more_body", False)
        if self.is_begun:
            self._link.write(self._framed(body, has_more=has_more))
        else:
            head = self._answer_head()
            self.is_begun = True
            self._link.write(head + self._framed(body, has_more=has_more))
        if has_more:
            await self._link.written()
        else:
            self.is_answered = True

    # -- within

    async def _wait_for_body(self) -> None:
        if not self.is_begun:  # later the rest is only dropped
            self._link.wants_body()
            if self.head.expects_continue:
                self._link.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not (self._body or self.is_whole or self.is_gone):
            await self._wait()

    async def _wait(self) -> None:
        self._news = asyncio.get_running_loop().create_future()
        await self._news

    def _wake(self) -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    def _answer_head(self) -> bytes:
        status, fields = self._start["status"], self._start["headers"]
        lines = [
            _status_line(status),
            *(b"%b: %b" % field for field in fields),
            _date(int(monotonic_seconds())),
        ]
        is_without_body = self.head.method == "HEAD" or status in _WITHOUT_BODY
        has_length = any(name == b"content-length" for name, _ in fields)
        if not (is_without_body or has_length):
            if self.head.is_http_1_0:
                self.is_last = True  # it ends with the connection
            else:
                self._is_chunked = True
                lines.append(b"transfer-encoding: chunked")
        self.is_last = self.is_last or not self._link.stays_open()
        if self.is_last:
            lines.append(b"connection: close")
        lines += (b"", b"")
        head = b"\r\n".join(lines)
        if not head.count(b"\r") == head.count(b"\n") == len(lines) - 1:
            raise ValueError("a header has a line break")  # its rest would be a header, or another answer
        return head

    def _framed(self, body: bytes, *, has_more: bool) -> bytes:
        if self.head.method == "HEAD" or self._start["status"] in _WITHOUT_BODY:
            return b""
        if not self._is_chunked:
            return body
        chunk = b"%x\r\n%b\r\n" % (len(body), body) if body else b""
        return chunk if has_more else chunk + b"0\r\n\r\n"


@lru_cache(maxsize=64)
def _status_line(status: int) -> bytes:
    return f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()


@lru_cache(maxsize=1)
def _date(second: int) -> bytes:
    """Returns the current time as a header. `second` is of any clock: it is written anew when that has changed."""
    return f"date: {formatdate(usegmt=True)}".encode()
