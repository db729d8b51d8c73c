"""Both ends of a gRPC connection prove their names (docs/decisions/0013-mtls-of-our-own.md). Credentials are
renewed while they are in use.

A server uses new files at its next handshake. A client's channel is replaced when they change (`kit.rpc.renewed`), and
calls that began on the old one end there.

A certificate proves a name, not an address. A client expects the name of the service that it calls, at any address; a
server finds the caller's name in its list (`kit.rpc.callers`).
"""

from __future__ import annotations  # grpc's classes are generic in their stubs only

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import grpc

if TYPE_CHECKING:  # without certificates it is not needed
    from kit.base.tls import Identity, Material


def show_expiry(identity: Identity | None) -> None:
    """Makes each scrape from now on report when the certificate ends."""
    from kit.observe import metrics  # noqa: PLC0415  a process that serves has it; the command starts sooner

    if identity is None:
        return

    def expires() -> float:  # seconds
        return identity.current().expires_at.timestamp()

    metrics.CERTIFICATE_EXPIRES.set_function(expires)


# -- servers


def server_credentials(identity: Identity) -> grpc.ServerCredentials:
    """Requires clients to show a certificate of the CA. Called at every handshake, so renewed files are used."""
    given = identity.current()

    def renewed() -> grpc.ServerCertificateConfiguration | None:
        nonlocal given
        material = identity.current()
        if material is given:
            return None
        given = material
        return _configuration(material)

    # The stubs do not allow None, by which gRPC means "unchanged".
    fetch = cast(Callable[[], grpc.ServerCertificateConfiguration], renewed)
    return grpc.dynamic_ssl_server_credentials(
        _configuration(given), fetch, require_client_authentication=True
    )


def _configuration(material: Material) -> grpc.ServerCertificateConfiguration:
    return grpc.ssl_server_certificate_configuration([(material.key, material.certificate)], material.ca)


# -- clients


def channel_credentials(material: Material) -> grpc.ChannelCredentials:
    """Returns the credentials by which a caller proves its name and accepts names signed by the CA."""
    return grpc.ssl_channel_credentials(material.ca, material.key, material.certificate)


def expecting(name: str) -> tuple[str, str]:
    """Returns the channel option that requires `name` in the peer's certificate, at any address."""
    return ("grpc.default_authority", name)
