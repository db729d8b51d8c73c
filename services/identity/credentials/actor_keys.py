"""The Ed25519 keys that sign actor tokens (kit.rpc.actor_tokens)."""

from dataclasses import dataclass
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


@dataclass(frozen=True, slots=True)
class SigningKey:
    key_id: str
    private_key: Ed25519PrivateKey


class KeptKey:
    """The signing key as it was read, until a given time. It is replaced as a whole, so threads need no lock."""

    def __init__(self) -> None:
        self._kept: tuple[SigningKey, datetime] | None = None

    def get(self, now: datetime) -> SigningKey | None:
        kept = self._kept
        return kept[0] if kept is not None and now < kept[1] else None

    def set(self, key: SigningKey, until: datetime) -> None:
        self._kept = (key, until)


def new_private_key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


def private_from(data: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(data)
