"""The certificate of this process, its key and the CA that it trusts, as files.

cert-manager or an operator replaces the files every few days, so they are checked once a second and used without a
restart. While new files are unusable, such as a key that came before its certificate, the last usable ones stay in use.
The gRPC side of this is in `kit.rpc.tls`.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

import structlog

from kit.base.clock import monotonic_seconds

READ_EVERY_SECONDS: Final = 1.0

T = TypeVar("T")

log = structlog.get_logger(__name__)


class Unusable(ValueError):
    """The files can't be used. The text names the file and the reason, for operators; never its content."""


@dataclass(frozen=True)
class Files:
    """Paths of PEM files: the CA's certificates, our own with the intermediate ones, and its key without password."""

    ca: Path
    certificate: Path
    key: Path


@dataclass(frozen=True)
class Material:
    """The content of the files, as PEM. `names` are the DNS names in the certificate of this process."""

    ca: bytes = field(repr=False)
    certificate: bytes = field(repr=False)
    key: bytes = field(repr=False)
    names: tuple[str, ...]
    expires_at: datetime


def read(files: Files) -> Material:
    """Reads the files. Raises `Unusable`: a file is unreadable or wrong, the key is of another certificate, no name."""
    # Imported here: it takes a tenth of a second, which processes without TLS need not spend.
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    ca, certificate, key = (_content(path) for path in (files.ca, files.certificate, files.key))
    _parsed(files.ca, "certificate", lambda: x509.load_pem_x509_certificates(ca))
    own = _parsed(files.certificate, "certificate", lambda: x509.load_pem_x509_certificates(certificate))[0]
    private_key = _parsed(files.key, "private key without password", lambda: load_pem_private_key(key, None))
    if private_key.public_key() != own.public_key():
        raise Unusable(f"{files.key} is not the key of {files.certificate}")
    try:
        alternatives = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        names = alternatives.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        names = []
    if not names:
        raise Unusable(f"{files.certificate} has no DNS name to be known by")
    return Material(
        ca=ca, certificate=certificate, key=key, names=tuple(names), expires_at=own.not_valid_after_utc
    )


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unusable(f"{path} can't be read: {error.strerror}") from None


def _parsed(path: Path, what: str, parse: Callable[[], T]) -> T:
    try:
        return parse()
    except (ValueError, TypeError):  # TypeError: a key with a password
        raise Unusable(f"{path} holds no {what} in PEM") from None


class Identity:
    """The content of the files, at most a second old. Any thread may use it. It starts no thread, so it survives a
    fork.
    """

    def __init__(self, files: Files) -> None:
        """Raises `Unusable`."""
        self._files = files
        self._seen = _state(files)
        self._reading = threading.Lock()
        self._read_at_seconds = monotonic_seconds() + READ_EVERY_SECONDS
        self._material = read(files)
        self._log_taken()

    def current(self) -> Material:
        """Returns the same object until the files have changed; cheap enough for every call."""
        if monotonic_seconds() >= self._read_at_seconds and self._reading.acquire(blocking=False):
            try:
                self._read_again()
            finally:
                self._reading.release()
        return self._material

    def _read_again(self) -> None:
        self._read_at_seconds = monotonic_seconds() + READ_EVERY_SECONDS
        state = _state(self._files)  # before reading: a change during the read is found at the next check
        if state == self._seen:
            return
        self._seen = state
        try:
            material = read(self._files)
        except Unusable as why:
            log.warning(
                "certificate_not_taken", why=str(why), expires_at=self._material.expires_at.isoformat()
            )
            return
        if material != self._material:
            self._material = material
            self._log_taken()

    def _log_taken(self) -> None:
        names, expires_at = self._material.names, self._material.expires_at
        log.info("certificate_taken", names=names, expires_at=expires_at.isoformat())


def _state(files: Files) -> tuple[tuple[int, int, int] | None, ...]:
    """Returns a value that changes whenever a file does, also by a changed link, as in Kubernetes' volumes."""
    return tuple(_stamp(path) for path in (files.ca, files.certificate, files.key))


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
