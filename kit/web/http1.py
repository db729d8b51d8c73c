"""HTTP/1.1 as a client sends it: cut into requests, and refused where two readers could understand it differently.

httptools (llhttp, which Node.js uses) reads heads and chunks, strictly: lines end with CRLF, no folded fields, one
Content-Length, no Content-Length beside a Transfer-Encoding. The rules that it does not have are here. It gets the
bytes of one request at a time: a request that comes together with the one before it is not read until that is answered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Protocol

import httptools

# For one head, with its request line. Browsers send a few KiB. It also bounds the bytes between two pieces of a body in
# chunks: extensions of chunks, and trailers.
HEAD_MAX_BYTES: Final = 16 * 1024
# A name of 128 four-byte characters in a path, percent-encoded, takes 1536 bytes of it.
REQUEST_LINE_MAX_BYTES: Final = 8190
FIELD_MAX_BYTES: Final = 8190
FIELDS_MAX: Final = 100
# The most empty lines in a body in chunks. Each ends a piece that is parsed by itself: 64 KiB of them took 27 ms.
EMPTY_LINES_MAX: Final = 1000

_EMPTY_LINE: Final = b"\r\n\r\n"
# RFC 9112 section 3.2: a target is printable ASCII. llhttp also takes what old browsers sent.
_NOT_OF_A_TARGET: Final = re.compile(rb"[^\x21-\x7e]")
# Two readers of a request that has one of them twice could take different ones.
_ONCE: Final = frozenset({b"host", b"content-type", b"content-length", b"transfer-encoding"})


class Malformed(Exception):
    """The bytes are no request that is served. `status` is that of the answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Head:
    """headers  in their order, names in lower case, without those that have a `_`: other readers take it for a `-`
    is_http_1_0  the answer can't be sent in chunks
    keeps_alive  the connection may have a next request
    """

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    is_http_1_0: bool
    keeps_alive: bool
    expects_continue: bool = False


class Reader(Protocol):
    """Gets the parts of each request in their order."""

    def on_head(self, head: Head) -> None: ...

    def on_body(self, piece: bytes) -> None: ...

    def on_end(self) -> None: ...


class Parser:
    """The requests of one connection. After `Malformed` it can't be used any more."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._begin()
        self._http = httptools.HttpRequestParser(self)

    def feed(self, data: bytes) -> bytes:
        """Parses up to the end of a request; returns the bytes behind it. Raises Malformed."""
        start = 0
        while start < len(data):
            end = self._end_of_piece(data, start)
            self._parse(data[start:end])
            start = end
            if self._is_whole:
                self._begin()
                self._reader.on_end()
                return data[start:]
        return b""

    def close(self) -> None:
        """Forgets the reader, and the parser of httptools, which knows this one."""
        del self._http, self._reader

    # -- pieces, none of which reaches into a next request

    def _begin(self) -> None:
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._pieces: list[bytes] = []
        self._has_head = self._is_whole = False
        self._head: Head | None = None
        self._tail = b""  # the end of the piece before, where an empty line may begin
        self._body_left = 0  # of a Content-Length
        self._empty_lines = 0  # of a body in chunks
        self._quiet_bytes = 0  # since the request began, or since the last byte of its body

    def _end_of_piece(self, data: bytes, start: int) -> int:
        """A head and a body in chunks end with an empty line; a Content-Length says where a body ends."""
        if self._body_left:
            return min(len(data), start + self._body_left)
        found = (self._tail + data[start : start + 3]).find(_EMPTY_LINE)
        if found >= 0:
            end = start + found + 4 - len(self._tail)
        else:
            found = data.find(_EMPTY_LINE, start)
            end = found + 4 if found >= 0 else len(data)
        self._tail = b"" if found >= 0 else (self._tail + data[max(start, end - 3) : end])[-3:]
        if self._head is not None and found >= 0:
            self._empty_lines += 1
            if self._empty_lines > EMPTY_LINES_MAX:
                raise Malformed(400, "The body in chunks has too many empty lines")
        self._quiet_bytes += end - start
        if self._quiet_bytes > HEAD_MAX_BYTES and self._head is None:
            raise Malformed(431, "The head of the request is too large")  # parsing it would take milliseconds
        return end

    def _parse(self, piece: bytes) -> None:
        try:
            self._http.feed_data(piece)
        except httptools.HttpParserUpgrade:
            pass  # it has ended the request without its body, see `_take_head`
        except httptools.HttpParserError as error:
            raise Malformed(501 if self._has_unknown_coding() else 400, str(error)) from None
        if self._head is None:
            if self._has_head:
                self._take_head()
            elif len(self._url) > REQUEST_LINE_MAX_BYTES:
                raise Malformed(414, "The request line is too large")
        elif self._pieces:
            self._take_body()
        elif self._quiet_bytes > HEAD_MAX_BYTES:
            raise Malformed(431, "The extensions of chunks or the trailers are too large")

    def _take_body(self) -> None:
        for piece in self._pieces:
            self._reader.on_body(piece)
            if self._body_left:
                self._body_left -= len(piece)
        self._pieces.clear()
        self._quiet_bytes = 0

    # -- the head

    def _take_head(self) -> None:
        method, version = self._http.get_method(), self._http.get_http_version()
        self._check_request_line(method, version)
        length, expects_continue = self._check_fields()
        if self._upgrades:
            self._parse_without_upgrade(method, version)
            return
        is_http_1_0 = version == "1.0"
        if is_http_1_0 and length is None:
            raise Malformed(400, "HTTP/1.0 has no bodies in chunks")
        self._body_left = length or 0
        self._head = Head(
            method.decode(),
            self._url,
            self._headers,
            is_http_1_0=is_http_1_0,
            keeps_alive=self._keeps_alive and not is_http_1_0,
            expects_continue=expects_continue and not is_http_1_0,
        )
        self._reader.on_head(self._head)

    def _check_request_line(self, method: bytes, version: str) -> None:
        if len(method) + len(self._url) + len(" ") + len(" HTTP/1.1") > REQUEST_LINE_MAX_BYTES:
            raise Malformed(414, "The request line is too large")
        if version not in ("1.1", "1.0"):
            raise Malformed(400, "The version is neither HTTP/1.1 nor HTTP/1.0")
        if method == b"CONNECT":
            raise Malformed(400, "CONNECT is a method of proxies")
        if _NOT_OF_A_TARGET.search(self._url) or (self._url == b"*" and method != b"OPTIONS"):
            raise Malformed(400, "Invalid request target")

    def _check_fields(self) -> tuple[int | None, bool]:
        """Returns the length of the body, None when it comes in chunks; and whether the client waits for a 100."""
        if len(self._headers) > FIELDS_MAX:
            raise Malformed(431, "Too many header fields")
        seen = set()
        length: int | None = 0
        expects_continue = False
        for name, value in self._headers:
            if len(name) + len(value) > FIELD_MAX_BYTES - len(": \r\n"):
                raise Malformed(431, "A header field is too large")
            if name in _ONCE:
                if name in seen:
                    raise Malformed(400, f"Duplicate {name.decode()} header")
                seen.add(name)
                if name == b"content-length":
                    length = int(
                        value[-20:]
                    )  # llhttp has checked it: below 2 ** 64, after any number of zeros
                elif name == b"transfer-encoding":
                    if value.lower() != b"chunked":
                        raise Malformed(501, "The only Transfer-Encoding is chunked")
                    length = None
            elif name == b"expect":
                expects_continue = value.lower() == b"100-continue"
        return length, expects_continue

    def _has_unknown_coding(self) -> bool:
        return any(
            name == b"transfer-encoding" and value.lower() != b"chunked" for name, value in self._headers
        )

    def _parse_without_upgrade(self, method: bytes, version: str) -> None:
        """Parses the head again without its Upgrade: an unknown one is ignored (RFC 9110 section 7.8), but llhttp has
        ended the request without its body.
        """
        lines = [b"%b %b HTTP/%b" % (method, self._url, version.encode())]
        lines += [b"%b: %b" % (name, value) for name, value in self._headers if name != b"upgrade"]
        self._begin()
        self._http = httptools.HttpRequestParser(self)
        self._parse(b"\r\n".join([*lines, b"", b""]))

    # -- called by httptools

    def on_message_begin(self) -> None:
        if self._is_whole:  # no piece reaches into a next request
            raise Malformed(400, "A request ends without an empty line")

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._head is None and b"_" not in name:  # after the head come the trailers, which are dropped
            self._headers.append((name.lower(), value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        self._has_head = True
        self._keeps_alive = self._http.should_keep_alive()  # both are unknown after the end of the request
        self._upgrades = self._http.should_upgrade()

    def on_body(self, piece: bytes) -> None:
        self._pieces.append(piece)

    def on_message_complete(self) -> None:
        self._is_whole = True
