"""What an answer says first: its status line decides, whatever is wrong with the rest (docs/decisions/0020).

aiohttp hands an answer over when all of its head has come and is in order; one with a broken header, or with bytes
behind its end, is an error to it, and its status is lost. So each connection is listened to from its first byte on,
as far as it takes to know the status, and what came is kept for the case that aiohttp gives up.
"""

import asyncio
import functools
import re
from collections.abc import Callable
from contextvars import ContextVar
from email.parser import HeaderParser
from typing import Any, Final, Self

import aiohttp
from aiohttp.client_proto import ResponseHandler

from kit.clock import monotonic_seconds

KEPT_MAX_BYTES: Final = 32 * 1024  # of headers and body
STATUS_LINE_MAX_BYTES: Final = 8 * 1024  # and of an interim answer

_INTERIM: Final = re.compile(rb"[\r\n]*HTTP/1\.[01] 1(?!01)\d\d(?: [^\n]*)?\r?\n(?:[^\r\n][^\n]*\n)*\r?\n")
_STATUS_LINE: Final = re.compile(rb"[\r\n]*HTTP/1\.[01] ([2-9]\d\d|101)(?: [^\n]*)?\r?\n")


_expected: ContextVar["Head"] = ContextVar("expected")  # by the request that this task sends


class Head:
    """One answer as it comes in: its status, and its first bytes as long as nobody else has understood them.

    `with head:` around one request. `status_seconds` on the monotonic clock is when the status line was whole;
    `on_status` is called then, unless the headers came along. Interim answers (1xx) are passed over.
    """

    def __init__(self, on_status: Callable[[], object]) -> None:
        self.status: int | None = None
        self.status_seconds = 0.0
        self._on_status = on_status
        self._listening = True
        self._kept = bytearray()

    def __enter__(self) -> Self:
        self._token = _expected.set(self)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        _expected.reset(self._token)
        self._listening = False
        if kind is None:  # all of it is with aiohttp
            self._kept.clear()
            self.status_seconds = self.status_seconds or monotonic_seconds()

    def begin(self) -> None:
        """From the first byte on; again when aiohttp sends the request again."""
        self.status = None
        self._listening = True
        self._kept.clear()

    def feed(self, data: bytes) -> None:
        if not self._listening:
            return
        if self.status is None:
            self._kept += data
            if b"\n" in data:  # it may come byte by byte
                self._look()
            self._listening = self.status is not None or len(self._kept) <= STATUS_LINE_MAX_BYTES
            del self._kept[KEPT_MAX_BYTES:]
        else:
            self._kept += data[: KEPT_MAX_BYTES - len(self._kept)]

    def _look(self) -> None:
        start = 0
        while interim := _INTERIM.match(self._kept, start, start + STATUS_LINE_MAX_BYTES):
            start = interim.end()
        del self._kept[:start]
        if line := _STATUS_LINE.match(self._kept, 0, STATUS_LINE_MAX_BYTES):
            self.status, self.status_seconds = int(line[1]), monotonic_seconds()
            del self._kept[: line.end()]
            if (
                b"\r\n\r\n" not in self._kept
            ):  # else aiohttp has an answer or a complaint at once, without a timer
                self._on_status()

    def rest(self, body_max_bytes: int) -> tuple[tuple[tuple[bytes, bytes], ...], bytes]:
        """Headers and body as far as they came, in the reading of the standard library, which takes anything."""
        message = HeaderParser().parsestr(self._kept.decode("latin-1"))
        headers = ((name.encode("latin-1"), str(value).encode("latin-1")) for name, value in message.items())
        return tuple(headers), str(message.get_payload()).encode("latin-1")[:body_max_bytes]


class Connector(aiohttp.TCPConnector):
    """aiohttp's, but for the connections it makes: they let the head of each answer listen."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        make: Callable[[asyncio.AbstractEventLoop], ResponseHandler] = _Handler
        self._factory = functools.partial(make, asyncio.get_running_loop())


class _Handler(ResponseHandler):
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._head: Head | None = None

    def set_response_params(self, **params: Any) -> None:
        """aiohttp calls it before each request on the connection, in the request's task."""
        self._head = _expected.get()
        self._head.begin()
        super().set_response_params(**params)

    def data_received(self, data: bytes) -> None:
        if self._head is not None:
            self._head.feed(data)
        super().data_received(data)
