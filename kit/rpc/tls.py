"""Both ends of a gRPC connection prove their names (docs/decisions/0021-mtls-of-our-own.md). Credentials are
renewed while they are in use.

A server takes new files at its next handshake; a client's channel is replaced when they change (`kit.rpc.renewed`), and
calls begun on the old one end there.

What a certificate says is who somebody is, not where: a client expects the name of the service it calls, at whatever
address; a server looks up the caller's name in its list (`kit.rpc.callers`).
"""

from __future__ import annotations  # grpc's classes are generic in their stubs only

from collections.abc import Callable
from typing import Final, cast

import grpc

from kit import metrics
from kit.tls import Identity, Material

EXPIRES: Final = metrics.gauge(
    "tls_certificate_expires_timestamp_seconds", "When the certificate in use ends; 0 without TLS"
)


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


def channel_credentials(material: Material) -> grpc.ChannelCredentials:
    """With which a caller proves who it is, and believes whom that CA has signed for."""
    return grpc.ssl_channel_credentials(material.ca, material.key, material.certificate)


def expecting(name: str) -> tuple[str, str]:
    """The channel option by which the peer's certificate must have `name`, wherever it was found."""
    return ("grpc.default_authority", name)
