"""The steps of every request around Falcon: client, raw path, request id, deadline, span, one log line.

It is outside Falcon for two reasons: Falcon waits for the first piece of the body before any code here could run, and
servers pass on a decoded path, in which a name with a `/` looks like two segments. Nothing is answered here:
a refusal travels in the `Exchange` and `middleware` raises it inside Falcon, so that every answer leaves by one way.
The body stays with the client until a resource reads it (`bodies`).
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from kit.base import request_id
from kit.base.clock import monotonic_seconds
from kit.observe import tracing
from kit.observe.log import get_logger
from kit.rpc import made_calls
from kit.rpc.made_calls import MadeCalls
from kit.web import spans
from kit.web.bodies import ArrivingBody, Bounds, ClientGone, Receive
from kit.web.counting import count
from kit.web.exchange import REQUEST_SECONDS, SCOPE_KEY, Exchange, allow
from kit.web.walls.clients import Clients

_WATCHED_BY_MACHINES: Final = frozenset({"/healthz", "/readyz"})

# The types of ASGI: plain dictionaries all the way.
Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Any]
App = Callable[[Scope, Receive, Send], Any]

_log = get_logger()


class Edge:
    """The ASGI application that the server runs.

    open_app       makes the application behind it; entered at the worker's start, inside its loop, and left at its end
    bounds         returns the bounds of a body by the path that it is sent to
    exchange_type  the process' own, if it has one
    """

    def __init__(
        self,
        open_app: Callable[[], AbstractAsyncContextManager[App]],
        *,
        clients: Clients,
        bounds: Callable[[str], Bounds],
        exchange_type: type[Exchange] = Exchange,
    ) -> None:
        self._open_app = open_app
        self._clients = clients
        self._bounds = bounds
        self._exchange_type = exchange_type
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Ends the streams, because the server is about to stop and waits for everything that is open."""
        self._stopping.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._serve(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self._open_app() as self._app:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = self._begun(scope, receive)
        # Every request is a task of its own, and what is bound here ends with it.
        request_id.bind(exchange.request_id)
        made = made_calls.begin()

        async def send_with_headers(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                more = [(b"x-request-id", exchange.request_id.encode())]
                if self._stopping.is_set():
                    more.append((b"connection", b"close"))
                message["headers"] = [*message["headers"], *more]
            await send(message)

        with (
            tracing.NOTHING if scope["path"] in _WATCHED_BY_MACHINES else spans.begun(scope, exchange)
        ) as span:
            allow(REQUEST_SECONDS)
            try:
                await self._app(scope, exchange.arriving.after, send_with_headers)
            except ClientGone:
                pass
            finally:
                exchange.arriving.release()
                spans.answered(span, scope["method"], exchange)
                if exchange.status:
                    _log_request(scope, exchange, made)

    def _begun(self, scope: Scope, receive: Receive) -> Exchange:
        """Returns the exchange of a new request. Corrects the scope: Falcon and the log get the client behind a proxy,
        and the path as it was sent.
        """
        scope["path"] = _undecoded_path(scope["raw_path"])
        peer = scope["client"][0] if scope["client"] else ""
        client = self._clients.client(peer, scope["headers"])
        scope["client"] = (client, 0)
        body = ArrivingBody(receive, scope["headers"], bounds=self._bounds(scope["path"]))
        exchange = scope[SCOPE_KEY] = self._exchange_type(
            request_id=request_id.new(),
            started_seconds=monotonic_seconds(),
            stopping=self._stopping,
            arriving=body,
            network=self._clients.network(client),
            refused=body.fault(),
        )
        return exchange


def _undecoded_path(raw_path: bytes) -> str:
    """Returns the path as it was sent, percent-encoded, without a trailing slash. Resources decode their segments,
    once.
    """
    path = raw_path.decode("latin-1")
    return path[:-1] if path.endswith("/") and len(path) > 1 else path


def _log_request(scope: Scope, exchange: Exchange, made: MadeCalls) -> None:
    """Logs one wide line per request, and counts it."""
    path = scope["path"]
    seconds = monotonic_seconds() - exchange.started_seconds
    count(scope["method"], exchange, seconds=seconds)
    write = _log.debug if path in _WATCHED_BY_MACHINES else _log.info
    write(
        "request_answered",
        method=scope["method"],
        path=path,
        status=exchange.status,
        code=exchange.code,
        duration_ms=round(seconds * 1000, 1),
        **exchange.log_fields(),
        client=scope["client"][0],
        **made.log_fields(),
    )
