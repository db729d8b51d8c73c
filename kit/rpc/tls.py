"""Both ends of a gRPC connection prove who they are (DESIGN section 9), by credentials that are renewed while they are
used.

A server takes new files at its next handshake. A client of gRPC in Python can't (grpc/grpc#41779), so a channel is
replaced by a new one when they change: calls begun on the old one end there.

What a certificate says is who somebody is, not where: a client expects the name of the service it calls, at whatever
address; a server looks up the caller's name in its list (`kit.rpc.callers`).
"""

from __future__ import annotations  # grpc's classes are generic in their stubs only

import asyncio
import threading
from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar, cast

import grpc
from grpc import aio

from kit import metrics
from kit.tls import Identity, Material

# Longer than any call: what began on a replaced channel ends by itself.
REPLACED_CLOSES_SECONDS: Final = 60.0

EXPIRES: Final = metrics.gauge(
    "tls_certificate_expires_timestamp_seconds", "When the certificate in use ends; 0 without TLS"
)

C = TypeVar("C")  # a channel of either kind


def show_expiry(identity: Identity | None) -> None:
    """From now on each scrape tells it."""
    if identity is None:
        return

    def expires() -> float:  # seconds
        return identity.current().expires_at.timestamp()

    EXPIRES.set_function(expires)


# -- servers


def server_credentials(identity: Identity) -> grpc.ServerCredentials:
    """Whoever connects must show a certificate of the CA. Asked at every handshake, so renewed files are taken."""
    given = identity.current()

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        nonlocal given
        material = identity.current()
        if material is given:
            return None
        given = material
        return _configuration(material)

    # The stubs know nothing of None, which is gRPC's own word for "as before".
    fetch = cast(Callable[[], grpc.ServerCertificateConfiguration], renewed)
    return grpc.dynamic_ssl_server_credentials(
        _configuration(given), fetch, require_client_authentication=True
    )


def _configuration(material: Material) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(material.key, material.certificate)], material.ca)


# -- clients


def secure_channel(
    identity: Identity, open: Callable[[grpc.ChannelCredentials], grpc.Channel]
) -> grpc.Channel:
    """A channel that is replaced by a new one from `open` when the files have changed."""
    return cast(grpc.Channel, _Renewed(identity, open, _close_later))


def aio_secure_channel(
    identity: Identity, open: Callable[[grpc.ChannelCredentials], aio.Channel]
) -> aio.Channel:
    """The same for asyncio."""
    return cast(aio.Channel, _Renewed(identity, open, _close_later_in_the_loop))


def expecting(name: str) -> tuple[str, str]:
    """The channel option by which the peer's certificate must have `name`, wherever it was found."""
    return ("grpc.default_authority", name)


class _Renewed(Generic[C]):
    """Stands for the channel of the current credentials, whichever that is by now."""

    def __init__(
        self, identity: Identity, open: Callable[[grpc.ChannelCredentials], C], retire: Callable[[C], None]
    ) -> None:
        self._identity = identity
        self._open = open
        self._retire = retire
        self._replacing = threading.Lock()
        self._material = identity.current()
        self._channel = open(_credentials(self._material))

    def current(self) -> C:
        if self._identity.current() is not self._material:
            with self._replacing:
                material = self._identity.current()
                if material is not self._material:
                    replaced, self._channel = self._channel, self._open(_credentials(material))
                    self._material = material
                    self._retire(replaced)
        return self._channel

    def unary_unary(self, *args: Any, **kwargs: Any) -> _Call:
        return _Call(self, lambda channel: channel.unary_unary(*args, **kwargs))

    def unary_stream(self, *args: Any, **kwargs: Any) -> _Call:
        return _Call(self, lambda channel: channel.unary_stream(*args, **kwargs))

    def stream_unary(self, *args: Any, **kwargs: Any) -> _Call:
        return _Call(self, lambda channel: channel.stream_unary(*args, **kwargs))

    def stream_stream(self, *args: Any, **kwargs: Any) -> _Call:
        return _Call(self, lambda channel: channel.stream_stream(*args, **kwargs))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.current(), name)


class _Call:
    """One method, on that channel."""

    def __init__(self, channels: _Renewed[Any], make: Callable[[Any], Any]) -> None:
        self._channels = channels
        self._make = make
        channel = channels.current()
        self._made = (channel, make(channel))  # one attribute, so that threads see both or neither

    def _current(self) -> Any:
        channel, made = self._channels.current(), self._made
        if made[0] is not channel:
            made = self._made = (channel, self._make(channel))
        return made[1]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._current()(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._current(), name)  # `future` and `with_call` of the synchronous kind


def _credentials(material: Material) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(material.ca, material.key, material.certificate)


def _close_later(channel: grpc.Channel) -> None:
    timer = threading.Timer(REPLACED_CLOSES_SECONDS, channel.close)
    timer.daemon = True
    timer.start()


_closing: Final[set[asyncio.Task[None]]] = set()  # the loop holds tasks weakly


def _close_later_in_the_loop(channel: aio.Channel) -> None:
    task = asyncio.get_running_loop().create_task(channel.close(REPLACED_CLOSES_SECONDS))
    _closing.add(task)
    task.add_done_callback(_closing.discard)
