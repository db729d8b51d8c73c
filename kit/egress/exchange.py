"""One request and the head of its answer, on a connection of aiohttp's connector.

aiohttp's session serves redirects, cookies, proxies and uploads, which egress does not use. A small POST takes 73 us of
processor time with it and 25 us here. Connections, TLS, their pool and the parser are aiohttp's.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp.client_reqrep import ClientRequest
from aiohttp.connector import Connection
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from yarl import URL

from kit.egress.head import Connector, Handler, Head

BODY_MAX_BYTES: Final = 16 * 1024

_NO_TIMEOUTS: Final = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)
_SWITCHING_PROTOCOLS: Final = 101
_INTERIM: Final = range(100, 200)


@dataclass(frozen=True, slots=True)
class Target:
    """An address to send to. The connector reads the connection's from `request`; `start` begins each head."""

    request: ClientRequest
    start: bytes


def target_of(method: str, url: URL) -> Target:
    """Returns the target of all requests with this method to this URL. On the loop."""
    request = ClientRequest(method, url, loop=asyncio.get_running_loop())
    path, host = request.url.raw_path_qs, request.headers["Host"]
    start = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\nAccept-Encoding: identity\r\n"
    return Target(request, start.encode("ascii"))


@dataclass(frozen=True, slots=True)
class Response:
    """An answer whose head has come. Its body is read from `content`; then `end` it."""

    status: int
    raw_headers: tuple[tuple[bytes, bytes], ...]
    content: StreamReader
    _connection: Connection

    def end(self, *, reusable: bool) -> None:
        """Lets the connection serve other requests, or closes it when the rest of the answer would still arrive."""
        if reusable:
            self._connection.release()
        else:
            self._connection.close()


async def exchange(
    connector: Connector, target: Target, head: Head, *, headers: Mapping[str, str], body: bytes | None
) -> Response:
    """Sends the request and returns the answer once its head has come. Raises errors of aiohttp, OSError, ValueError.

    The whole request is given to the transport at once: bodies are as small as their callers make them.
    """
    data = b"".join((target.start, _lines(headers, body), body or b""))
    connection = await connector.connect(target.request, [], _NO_TIMEOUTS)
    try:
        handler = connection.protocol
        assert isinstance(handler, Handler)
        if not handler.is_connected():
            raise aiohttp.ClientConnectionResetError("the connection was closed before the request")
        handler.expect(head, has_body=target.request.method != "HEAD", buffer_bytes=BODY_MAX_BYTES)
        assert handler.transport is not None
        handler.transport.write(data)
        while True:
            message, content = await handler.read()
            if message.code not in _INTERIM or message.code == _SWITCHING_PROTOCOLS:
                return Response(message.code, message.raw_headers, content, connection)
    except HttpProcessingError as error:
        connection.close()
        raise aiohttp.ClientPayloadError(str(error)) from error
    except BaseException:
        connection.close()
        raise


def _lines(headers: Mapping[str, str], body: bytes | None) -> bytes:
    lines = [f"{name}: {value}" for name, value in headers.items()]
    if body is not None:
        lines.append(f"Content-Length: {len(body)}")
    text = "\r\n".join(lines)
    # A line break in a value would begin a header of its own.
    if text.count("\r") + text.count("\n") != 2 * max(0, len(lines) - 1) or "\0" in text:
        raise ValueError("a header has a line break")
    return f"{text}\r\n\r\n".encode() if lines else b"\r\n"
