"""What happens to every request around Falcon: body, raw path, request id, deadline, span, one log line.

It stands outside Falcon because Falcon waits for the first piece of the body before anything of ours could run, and
because servers hand on a decoded path, in which an external_id with a `/` can't be told from two segments.
Nothing is answered here: what is refused travels in the `Exchange` and is raised by `auth` inside Falcon, so that every
answer has one way out.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final
from urllib.parse import urlsplit

from gateway import spans
from gateway.counting import count
from gateway.exchange import SCOPE_KEY, Exchange, allow
from gateway.pay.forms import PICTURE_MAX_BYTES
from kit import request_id, tracing
from kit.clock import monotonic_seconds
from kit.errors import Refused, exhausted, invalid
from kit.log import get_logger

REQUEST_SECONDS: Final = 5.0
BODY_MAX_BYTES: Final = 64 * 1024
BODY_SECONDS: Final = 10.0
# A customer's picture, from a telephone at the edge of its network (gateway.pay.forms). Nothing else may be that large.
PICTURE_PATH: Final = re.compile(r"/pay/[^/]+/(appeal|late)").fullmatch
PICTURE_BODY_MAX_BYTES: Final = PICTURE_MAX_BYTES + BODY_MAX_BYTES
PICTURE_BODY_SECONDS: Final = 60.0
# Closing a connection while the client still sends makes its system throw our answer away; so a body nobody wants is
# read and dropped, up to here.
UNWANTED_MAX_BYTES: Final = 32 * 1024 * 1024
UNWANTED_SECONDS: Final = 10.0

_WATCHED_BY_MACHINES: Final = frozenset({"/healthz", "/readyz"})

# The types of ASGI: plain dictionaries all the way.
Scope = dict[str, Any]
Receive = Callable[[], Any]
Send = Callable[[dict[str, Any]], Any]
App = Callable[[Scope, Receive, Send], Any]

_log = get_logger()


class ClientGone(Exception):
    """The client hung up before its request was complete."""


class Edge:
    """The ASGI application that the server sees.

    `open_app` makes what stands behind it; entered at the worker's start, inside its loop, and left at its end.
    """

    def __init__(self, open_app: Callable[[], AbstractAsyncContextManager[App]]) -> None:
        self._open_app = open_app
        self._app: App | None = None
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """The worker is about to stop: streams end, as the server waits for what is open."""
        self._stopping.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif self._app is None:
            raise RuntimeError(
                "the server must run the ASGI lifespan protocol (gunicorn: asgi_lifespan = on)"
            )
        else:
            await _serve(self._app, scope, receive, send, self._stopping)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._open_app() as self._app:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


async def _serve(app: App, scope: Scope, receive: Receive, send: Send, stopping: asyncio.Event) -> None:
    exchange = Exchange(request_id=request_id.new(), started_seconds=monotonic_seconds(), stopping=stopping)
    request_id.bind(exchange.request_id)  # every request is a task of its own, and the id ends with it
    scope[SCOPE_KEY] = exchange
    scope["path"] = _undecoded_path(scope["raw_path"])
    body = _Body(receive, takes_picture=bool(PICTURE_PATH(scope["path"])))

    async def send_with_request_id(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            exchange.status = message["status"]
            message["headers"] = [*message["headers"], (b"x-request-id", exchange.request_id.encode())]
        await send(message)

    with tracing.NOTHING if scope["path"] in _WATCHED_BY_MACHINES else spans.begun(scope, exchange) as span:
        try:
            exchange.body = await body.read(scope["headers"])
        except ClientGone:
            return
        except Refused as refused:
            exchange.refused = refused
        allow(REQUEST_SECONDS)
        try:
            await app(scope, _after_the_body(receive), send_with_request_id)
        finally:
            spans.answered(span, scope["method"], exchange)
            _tell(scope, exchange)
    await body.drop_the_rest()


def _undecoded_path(raw_path: bytes) -> str:
    """The path as it was sent, percent-encoding and all, without a trailing slash: each segment is decoded, once, by
    the resource that it is for.
    """
    path = raw_path.decode("latin-1")
    if not path.startswith("/"):  # the absolute form, which RFC 9112 section 3.2.2 obliges servers to take
        path = urlsplit(path).path or "/"
    return path[:-1] if path.endswith("/") and len(path) > 1 else path


def _after_the_body(receive: Receive) -> Receive:
    """What is left for Falcon to receive: the end of a body, and, for who asks on, that the client has hung up."""
    has_ended = False

    async def rest() -> Any:
        nonlocal has_ended
        if has_ended:
            return await receive()
        has_ended = True
        return {"type": "http.request", "body": b"", "more_body": False}

    return rest


class _Body:
    """The request's body, from a client that may be slow, or send too much, or nothing at all."""

    def __init__(self, receive: Receive, *, takes_picture: bool) -> None:
        self._receive = receive
        self._complete = False
        self._max_bytes = PICTURE_BODY_MAX_BYTES if takes_picture else BODY_MAX_BYTES
        self._seconds = PICTURE_BODY_SECONDS if takes_picture else BODY_SECONDS

    async def read(self, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
        """All of it. Raises Refused for one that is too long (unread) or doesn't arrive in time, or ClientGone."""
        length = _content_length(headers)
        if length == 0:
            self._complete = True
            return b""
        if length is not None and length > self._max_bytes:
            raise _too_large(self._max_bytes)
        try:
            async with asyncio.timeout(self._seconds):
                return await self._pieces()
        except TimeoutError:
            raise invalid(
                "VALIDATION_ERROR", f"the body did not arrive within {self._seconds:g} seconds"
            ) from None

    async def drop_the_rest(self) -> None:
        """Reads on into nothing, so that the client comes to read the answer. See UNWANTED_MAX_BYTES."""
        dropped_bytes = 0
        try:
            async with asyncio.timeout(UNWANTED_SECONDS):
                while not self._complete and dropped_bytes < UNWANTED_MAX_BYTES:
                    dropped_bytes += len(await self._piece())
        except (TimeoutError, ClientGone):
            pass

    async def _pieces(self) -> bytes:
        body = bytearray(await self._piece())  # a large one comes in many pieces
        while not self._complete:
            if len(body) > self._max_bytes:
                raise _too_large(self._max_bytes)
            body += await self._piece()
        if len(body) > self._max_bytes:
            raise _too_large(self._max_bytes)
        return bytes(body)

    async def _piece(self) -> bytes:
        event = await self._receive()
        if event["type"] == "http.disconnect":
            raise ClientGone
        self._complete = not event.get("more_body", False)
        piece: bytes = event.get("body", b"")
        return piece


def _content_length(headers: Iterable[tuple[bytes, bytes]]) -> int | None:
    """Bytes to come; None when they come in chunks. The server has checked the header's form."""
    length: int | None = 0
    for name, value in headers:
        if name == b"content-length":
            return int(value)
        if name == b"transfer-encoding":
            length = None
    return length


def _too_large(max_bytes: int) -> Refused:
    return exhausted("PAYLOAD_TOO_LARGE", f"The request body is larger than {max_bytes // 1024} KiB")


def _tell(scope: Scope, exchange: Exchange) -> None:
    """One wide line per request, and counted."""
    path = scope["path"]
    seconds = monotonic_seconds() - exchange.started_seconds
    count(scope["method"], exchange, seconds=seconds)
    write = _log.debug if path in _WATCHED_BY_MACHINES else _log.info
    write(
        "request",
        method=scope["method"],
        path=path,
        status=exchange.status,
        code=exchange.code,
        duration_ms=round(seconds * 1000, 1),
        merchant_id=exchange.merchant.merchant_id if exchange.merchant else "",
        key_id=exchange.key_id,
        client=scope["client"][0] if scope["client"] else "",
    )
