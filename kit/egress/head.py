"""The head of an answer: the status line decides, even if the rest is broken (docs/decisions/0009).

aiohttp returns an answer when its whole head has come and is in order. For an answer with a broken header, or with
bytes after its end, it raises an error and the status is lost. So the first bytes of each answer are read here too,
until the status is known, and kept for the case that aiohttp gives up.
"""

import asyncio
import functools
import re
from collections.abc import Callable
from email.parser import HeaderParser
from typing import Any, Final, Self

import aiohttp
from aiohttp.client_proto import ResponseHandler

from kit.base.clock import monotonic_seconds

KEPT_MAX_BYTES: Final = 32 * 1024  # of headers and body
STATUS_LINE_MAX_BYTES: Final = 8 * 1024  # including the interim answers before it

_STATUS_LINE: Final = re.compile(rb"[\r\n]*HTTP/1\.[01] ([1-9]\d\d)(?: [^\n]*)?\r?\n")


class Head:
    """One incoming answer: its status, and its first bytes until aiohttp has understood them.

    Use `with head:` around one request. `status_seconds` is when the status line was complete, on the monotonic clock;
    `on_status` is called then, unless the headers came with it. Interim answers (1xx) are skipped.
    """

    def __init__(self, on_status: Callable[[], object]) -> None:
        self.status: int | None
        self.status_seconds = 0.0
        self._on_status = on_status
        self._kept = bytearray()
        self.status = None
        self._listening = True
        self._in_interim = False
        self._passed_bytes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._listening = False
        if kind is None:  # aiohttp has the whole answer
            self._kept.clear()
            self.status_seconds = self.status_seconds or monotonic_seconds()

    def feed(self, data: bytes) -> None:
        if not self._listening:
            return
        self._kept += data if self.status is None else data[: KEPT_MAX_BYTES - len(self._kept)]
        if self.status is None:
            self._read_lines()
            waits = self._passed_bytes + len(self._kept) <= STATUS_LINE_MAX_BYTES
            self._listening = self.status is not None or waits
            del self._kept[KEPT_MAX_BYTES:]

    def _read_lines(self) -> None:
        """Takes whole lines from the front, each once: reading all of it at each byte would let a server that sends
        single bytes cost us much CPU."""
        while self.status is None and (end := self._kept.find(b"\n") + 1):
            line = bytes(self._kept[:end])
            del self._kept[:end]
            self._passed_bytes += end
            if self._in_interim:
                self._in_interim = line not in (b"\n", b"\r\n")
            elif line.strip(b"\r\n"):
                self._take_status(line)

    def _take_status(self, line: bytes) -> None:
        found = _STATUS_LINE.fullmatch(line)
        if found is None or self._passed_bytes > STATUS_LINE_MAX_BYTES:
            self._passed_bytes = STATUS_LINE_MAX_BYTES + 1  # it isn't HTTP, so the rest is not read
            self._kept.clear()
        elif found[1].startswith(b"1") and found[1] != b"101":
            self._in_interim = True
        else:
            self.status, self.status_seconds = int(found[1]), monotonic_seconds()
            # With the whole head there, aiohttp returns an answer or an error at once and needs no timer.
            if b"\r\n\r\n" not in self._kept:
                self._on_status()

    def rest(self, body_max_bytes: int) -> tuple[tuple[tuple[bytes, bytes], ...], bytes]:
        """Returns headers and body as far as they came, parsed by the standard library, which accepts any text."""
        message = HeaderParser().parsestr(self._kept.decode("latin-1"))
        headers = ((name.encode("latin-1"), str(value).encode("latin-1")) for name, value in message.items())
        return tuple(headers), str(message.get_payload()).encode("latin-1")[:body_max_bytes]


class Connector(aiohttp.TCPConnector):
    """aiohttp's connector, but its connections feed the head of each answer."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        make: Callable[[asyncio.AbstractEventLoop], ResponseHandler] = Handler
        self._factory = functools.partial(make, asyncio.get_running_loop())


class Handler(ResponseHandler):
    """One connection."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._head: Head | None = None

    def expect(self, head: Head, *, has_body: bool, buffer_bytes: int) -> None:
        """Parses the next bytes as an answer with this head, which has no body after a HEAD request."""
        self._head = head
        self.set_response_params(
            skip_payload=not has_body, read_until_eof=True, auto_decompress=False, read_bufsize=buffer_bytes
        )

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._head.feed(data)
        super().data_received(data)
