"""The HTTP client for addresses that other people chose: it vets the address, bounds everything and adds nothing.

Each name is resolved once and refused when any of its addresses isn't public. Each connection goes to a vetted address:
the socket factory, which every connection passes, checks it again. The name stays SNI and Host. No redirects, no
proxies, cookies or credentials of the environment, no decompression; body and headers are captured up to a limit. One
deadline covers DNS, connect, TLS, write and the answer's status line. The status line is the answer: the rest is
captured as far as it comes.
"""

import asyncio
import functools
import socket
import ssl
from collections.abc import Iterable, Mapping
from concurrent import futures
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from kit.base.clock import monotonic_seconds
from kit.egress.address import check_url, is_public
from kit.egress.exchange import BODY_MAX_BYTES, Response, Target, exchange, target_of
from kit.egress.head import Connector, Head
from kit.egress.names import RESOLVER_THREADS, ForbiddenAddress, Lookup, VettingResolver, getaddrinfo

HEADERS_SECONDS: Final = 2.0  # the longest wait for the headers once the status is known
BODY_SECONDS: Final = 2.0  # the longest wait for the body after that
HEADERS_MAX_COUNT: Final = 64
HEADER_VALUE_MAX_CHARACTERS: Final = 1024
RESOLVED_SECONDS: Final = 10
KEEP_ALIVE_SECONDS: Final = 2.0  # less than servers use, or a POST is sent on a connection being closed


class EgressError(Exception):
    """The call brought no answer; the text is for people and may be shown to those who chose the address."""


class Forbidden(EgressError):
    """The URL, or an address that it resolves to, may not be called; nothing was sent."""


class TimedOut(EgressError):
    """No status line came within the deadline."""


class Unreachable(EgressError):
    """No connection, no TLS, or an answer that isn't HTTP."""


@dataclass(frozen=True)
class Answer:
    """An HTTP answer. Headers and body that are slow, oversized or broken are cut; the status stays the same.

    duration_ms   from the start to the status line
    headers       at most 64, names as sent, repeated ones joined by ", ", values cut at 1024 characters
    body          at most the limit that the caller gave
    complete      whether headers and body are whole and in order
    """

    status: int
    duration_ms: int
    headers: Mapping[str, str]
    body: bytes
    complete: bool

    @property
    def text(self) -> str:
        """The body as text that any database takes: UTF-8 with replacement characters, no NUL."""
        return _storable(self.body.decode("utf-8", "replace"))


class Egress:
    """The client: `async with Egress() as egress: await egress.call("POST", url, body=…, deadline_seconds=15)`.

    One per event loop. Calls may run at the same time; the caller bounds how many. `allow_private` turns the address
    checks off and admits http: for local stacks. `lookup` has the shape of `socket.getaddrinfo(host, port)`.
    """

    def __init__(
        self,
        *,
        allow_private: bool = False,
        ssl_context: ssl.SSLContext | None = None,
        lookup: Lookup | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._ssl_context = ssl_context or ssl.create_default_context()
        self._lookup = lookup or getaddrinfo
        self._connector: Connector | None = None
        self._threads: futures.ThreadPoolExecutor | None = None
        # The same few endpoints are called again and again; a refusal is not cached.
        self._target = functools.lru_cache(maxsize=1024)(self._made_target)

    async def __aenter__(self) -> Self:
        self._threads = futures.ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="resolve")
        self._connector = Connector(
            resolver=VettingResolver(self._lookup, self._threads, allow_private=self._allow_private),
            socket_factory=self._socket,
            ssl=self._ssl_context,
            ttl_dns_cache=RESOLVED_SECONDS,
            limit=0,  # waiting here would count against the deadline; the caller bounds its calls
            keepalive_timeout=KEEP_ALIVE_SECONDS,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._connector is not None and self._threads is not None
        await self._connector.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def call(
        self,
        method: str,
        url: str,
        *,
        deadline_seconds: float,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        body_max_bytes: int = BODY_MAX_BYTES,
    ) -> Answer:
        """Sends one request and returns the answer, whatever its status; raises EgressError when no status came."""
        assert self._connector is not None, "use it as a context manager"
        try:
            target = self._target(method, url)
        except ValueError as error:
            raise Forbidden(str(error)) from None
        started = monotonic_seconds()
        patience = asyncio.timeout(deadline_seconds)
        head = Head(lambda: _shorten(patience, HEADERS_SECONDS))
        try:
            with head:
                async with patience:
                    response = await exchange(self._connector, target, head, headers=headers or {}, body=body)
        except (aiohttp.ClientError, OSError, ValueError) as error:  # TimeoutError is an OSError
            if head.status is None:
                if patience.expired():
                    raise TimedOut(f"no answer within {deadline_seconds:g} s") from None
                raise _without_answer(error, target.request.url.host or "") from error
            status, complete = head.status, False
            raw_headers, content = head.rest(body_max_bytes)
        else:
            status, raw_headers = response.status, response.raw_headers
            left_seconds = deadline_seconds - (monotonic_seconds() - started)
            content, complete = await _read(response, body_max_bytes, min(BODY_SECONDS, left_seconds))
        return Answer(
            status=status,
            duration_ms=round((head.status_seconds - started) * 1000),
            headers=_captured(raw_headers),
            body=content,
            complete=complete,
        )

    def _made_target(self, method: str, url: str) -> Target:
        return target_of(method, check_url(url, allow_private=self._allow_private))

    def _socket(self, address_info: tuple[Any, Any, int, str, tuple[Any, ...]]) -> socket.socket:
        """Makes the socket of every connection; refuses an address that isn't public."""
        family, kind, protocol, _, address = address_info
        if not self._allow_private and not is_public(str(address[0])):
            raise ForbiddenAddress
        return socket.socket(family, kind, protocol)


def _shorten(patience: asyncio.Timeout, seconds: float) -> None:
    until, now = patience.when(), asyncio.get_running_loop().time()
    if until is not None and until > now + seconds and not patience.expired():
        patience.reschedule(now + seconds)


async def _read(response: Response, max_bytes: int, seconds: float) -> tuple[bytes, bool]:
    """Returns the body that came within limit and time, and whether that is all of it; always ends the response."""
    if response.content.is_eof() and response.content.exception() is None:  # it came with the head, as usual
        content = bytearray(response.content.read_nowait())
        response.end(reusable=True)
        return bytes(content[:max_bytes]), len(content) <= max_bytes
    content = bytearray()
    complete = False
    try:
        with suppress(TimeoutError, aiohttp.ClientError, OSError, ValueError):
            async with asyncio.timeout(max(0.0, seconds)):
                while len(content) <= max_bytes:
                    chunk = await response.content.read(max_bytes + 1 - len(content))
                    if not chunk:
                        complete = True
                        break
                    content += chunk
    finally:
        response.end(reusable=complete)
    return bytes(content[:max_bytes]), complete


def _captured(raw_headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    captured: dict[str, str] = {}
    for raw_name, raw_value in raw_headers:
        name = _storable(raw_name.decode("utf-8", "replace"))[:HEADER_VALUE_MAX_CHARACTERS]
        value = _storable(raw_value.decode("utf-8", "replace"))
        value = f"{captured[name]}, {value}" if name in captured else value
        if name in captured or len(captured) < HEADERS_MAX_COUNT:
            captured[name] = value[:HEADER_VALUE_MAX_CHARACTERS]
    return captured


_FAILURES: Final[list[tuple[type[Exception], str]]] = [
    (aiohttp.ClientConnectorDNSError, "the name can't be resolved"),
    (aiohttp.ServerDisconnectedError, "the connection was closed without an answer"),
    (aiohttp.ClientResponseError, "the answer isn't HTTP"),
    (aiohttp.ClientPayloadError, "the answer isn't HTTP"),
    (aiohttp.ClientConnectorError, "the connection failed"),
    # Reset while it was written or read.
    (aiohttp.ClientOSError, "the connection was closed without an answer"),
    (ConnectionResetError, "the connection was closed without an answer"),
]


def _without_answer(error: Exception, host: str) -> EgressError:
    """Returns an error whose text has no resolved addresses: those of internal names must not be shown outside."""
    causes = [error, error.__cause__, *getattr(error.__cause__, "exceptions", ())]
    causes.append(getattr(error, "os_error", None))
    if any(isinstance(cause, ForbiddenAddress) for cause in causes):
        return Forbidden(f"{host} does not resolve to public addresses only")
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return Unreachable(f"{host}: TLS failed: {_tls_reason(error)}")
    what = next((text for kind, text in _FAILURES if isinstance(error, kind)), type(error).__name__)
    return Unreachable(f"{host}: {what}")


def _tls_reason(error: BaseException) -> str:
    # aiohttp's own classes inherit from SSL errors but have no reason; OpenSSL's error is the cause.
    cause = error.__cause__ or error
    reason: str = getattr(cause, "verify_message", "") or getattr(cause, "reason", "") or type(cause).__name__
    return reason.replace("_", " ").lower()


def _storable(text: str) -> str:
    return text.replace("\x00", "�")
