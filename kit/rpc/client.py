"""Channels to other services, for the generated stubs: `InvoicesServiceStub(channel(address, name="invoices"))`.

Every unary call has a deadline (the rest of the current request's less a margin, 5 s at most), carries the request id
and the actor (`kit.rpc.actors.carried`), and fails with `kit.rpc.errors.Refused`: the peer's own, or DB_UNAVAILABLE
when the peer is away or too slow. A call that a peer may have begun is not retried: only the caller knows whether that
is safe. With traces on, the call is a span and carries the trace's context.

The calls are wrapped directly: gRPC's client interceptors cost a future and several objects per call.
"""

from __future__ import annotations  # grpc's classes are generic in their stubs only

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, cast

import grpc
from grpc import aio

from kit.base import request_id
from kit.base.clock import monotonic_seconds
from kit.observe import tracing
from kit.observe.log import get_logger
from kit.rpc import actors, deadline, errors, made_calls, tls
from kit.rpc.limits import LEAST_USEFUL_SECONDS, MESSAGE_MAX_BYTES
from kit.rpc.renewed import Call, Renewed, close_later, close_later_in_the_loop
from kit.rpc.spans import CallSpans, answered

if TYPE_CHECKING:  # without certificates it is not needed
    from kit.base.tls import Identity

DEADLINE_SECONDS: Final = 5.0
# The time that is left to the caller to make an answer of a failure.
MARGIN_SECONDS: Final = 0.05

# A server at its stop cancels the calls that it had not begun and finishes the others (kit.process.main). So a call
# that ends as CANCELLED had no effect, and another server can do it.
_NOT_BEGUN: Final = {
    "maxAttempts": 3,
    "initialBackoff": "0.01s",
    "maxBackoff": "0.05s",
    "backoffMultiplier": 2,
    "retryableStatusCodes": ["CANCELLED"],
}
_SERVICE_CONFIG: Final = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [{"name": [{}], "retryPolicy": _NOT_BEGUN}],
}

_OPTIONS: Final[list[tuple[str, Any]]] = [
    ("grpc.service_config", json.dumps(_SERVICE_CONFIG)),
    # Otherwise a new channel shares the connection that another channel of this process just failed to make.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_http_proxy", 0),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # A restarted service is found again within a second; the defaults go up to two minutes.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.dns_min_time_between_resolutions_ms", 1000),
    ("grpc.max_receive_message_length", MESSAGE_MAX_BYTES),
    ("grpc.max_send_message_length", MESSAGE_MAX_BYTES),
    ("grpc.max_metadata_size", 32 * 1024),
]

_log = get_logger()


def channel(address: str, *, name: str, identity: Identity | None = None) -> grpc.Channel:
    """Returns a channel for threads, to the service `name` at host:port or a gRPC target. Connects on first use.

    With an `identity` it uses TLS and both ends prove their names: the peer's must be `name`.
    """
    target = _target(address)

    def open() -> grpc.Channel:
        if identity is None:
            return grpc.insecure_channel(target, _OPTIONS)
        credentials = tls.channel_credentials(identity.current())
        return grpc.secure_channel(target, credentials, [*_OPTIONS, tls.expecting(name)])

    return cast("grpc.Channel", _Channel(Renewed(open, close_later, _version(identity)), name))


def aio_channel(address: str, *, name: str, identity: Identity | None = None) -> aio.Channel:
    """Returns the same for asyncio: call it inside the running loop, after any fork. `await channel.close()` at
    the end.
    """
    target = _target(address)

    def open() -> aio.Channel:
        if identity is None:
            return aio.insecure_channel(target, _OPTIONS)
        credentials = tls.channel_credentials(identity.current())
        return aio.secure_channel(target, credentials, [*_OPTIONS, tls.expecting(name)])

    return cast("aio.Channel", _AioChannel(Renewed(open, close_later_in_the_loop, _version(identity)), name))


def _version(identity: Identity | None) -> Callable[[], object]:
    return (lambda: None) if identity is None else identity.current


def _target(address: str) -> str:
    known_scheme = address.startswith(("dns:", "unix:", "ipv4:", "ipv6:", "xds:"))
    return address if known_scheme else f"dns:///{address}"


def _timeout(given: float | None) -> float:
    """Returns the seconds that this call may take; raises Refused when too little is left."""
    seconds = DEADLINE_SECONDS if given is None else given
    remaining = deadline.remaining_seconds()
    if remaining is not None:
        seconds = min(seconds, remaining - MARGIN_SECONDS)
    if seconds < LEAST_USEFUL_SECONDS:
        raise errors.too_late()
    return seconds


def _metadata() -> list[tuple[str, str]]:
    metadata = list(actors.carried())
    if traceparent := tracing.outgoing():
        metadata.append((tracing.HEADER, traceparent))
    if id := request_id.current():
        metadata.append((request_id.METADATA_KEY, id))
    return metadata


class _Method:
    """One unary method of a service, for threads."""

    def __init__(self, channel: Renewed[Any], service: str, method: str, call: Call) -> None:
        self._channel = channel
        self._service = service
        self._method = method
        self._call = call
        self._spans = CallSpans(method)

    def __call__(self, request: Any, timeout: float | None = None) -> Any:
        seconds = _timeout(timeout)
        started = monotonic_seconds()
        with self._spans.of_client() as span:
            try:
                answer = self._call.current()(request, timeout=seconds, metadata=_metadata())
            except grpc.RpcError as error:
                raise self._refused(error, span, started) from error
            self._answered(started)
            return answer

    def _answered(self, started: float) -> None:
        self._channel.answered()
        made_calls.add(self._service, self._method, monotonic_seconds() - started, "OK")

    def _refused(self, error: grpc.RpcError, span: tracing.Span, started: float) -> errors.Refused:
        """Returns the Refused to raise. A failure that the peer didn't name is logged here, where its origin is
        known.
        """
        named = errors.refused_by_peer(error)
        if named is not None:
            self._channel.answered()
        elif error.code() is grpc.StatusCode.UNAVAILABLE:
            self._channel.unreachable()
        refused = named or errors.refused_from_rpc_error(error)
        refused.peer = self._service
        if named is None and error.code() is grpc.StatusCode.UNAVAILABLE:
            refused.silent_peer = self._service
        if refused.reason in ("DB_UNAVAILABLE", "INTERNAL_ERROR"):
            _log.warning(
                "call_failed",
                peer_service=self._service,
                method=self._method,
                code=error.code().name,
                details=error.details(),
                reason=refused.reason,
                **refused.metadata,
            )
        answered(span, error.code(), refused.reason)
        seconds = monotonic_seconds() - started
        made_calls.add(self._service, self._method, seconds, error.code().name, refused.reason)
        return refused


class _AioMethod(_Method):
    """The same for asyncio. Cancelling the task cancels the call."""

    async def __call__(self, request: Any, timeout: float | None = None) -> Any:  # noqa: ASYNC109  named by gRPC
        seconds = _timeout(timeout)
        started = monotonic_seconds()
        with self._spans.of_client() as span:
            try:
                answer = await self._call.current()(request, timeout=seconds, metadata=_metadata())
            except grpc.RpcError as error:
                raise self._refused(error, span, started) from error
            self._answered(started)
            return answer


class _Channel:
    """The part of a channel that stubs and their owners use."""

    _kind: ClassVar = _Method

    def __init__(self, channel: Renewed[Any], service: str) -> None:
        self._channel = channel
        self._service = service

    def unary_unary(self, method: str, *args: Any, **options: Any) -> _Method:
        call = self._channel.call(lambda channel: channel.unary_unary(method, *args, **options))
        return self._kind(self._channel, self._service, method, call)

    def unary_stream(self, method: str, *args: Any, **options: Any) -> Any:
        """Returns a stub that is never called: the standard health service has a method of this kind."""
        return self._channel.current().unary_stream(method, *args, **options)

    def close(self) -> Any:
        return self._channel.current().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _AioChannel(_Channel):
    """The same for asyncio; `close` returns an awaitable."""

    _kind = _AioMethod

    async def channel_ready(self) -> None:
        await self._channel.current().channel_ready()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
