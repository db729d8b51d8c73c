"""Actor tokens, and the Ed25519 keys that sign them."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import jwt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kit.base.actors import Actor
from kit.base.ids import new_id


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

    def forget(self) -> None:
        self._kept = None


def new_private_key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


def public_bytes(key: Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def private_from(data: bytes) -> Ed25519PrivateKey:
    return Ed25519PrivateKey.from_private_bytes(data)


def write_token(actor: Actor, *, key_id: str, private_key: Ed25519PrivateKey, now: datetime) -> str:
    """Returns a token for one request of the person, alive for 60 seconds."""
    claims = {
        "iss": "fiatgate-accounts",
        "sub": str(actor.person_id),
        "name": actor.name,
        "surface": actor.surface,
        "roles": sorted(actor.roles),
        "sid": str(actor.session_id),
        "iat": int(now.timestamp()),
        "exp": int((now + timedelta(seconds=60)).timestamp()),
        "step_up": int(actor.stepped_up_at.timestamp()) if actor.stepped_up_at else 0,
        "jti": str(new_id()),
    }
    if actor.merchant_id is not None:
        claims["merchant"] = str(actor.merchant_id)
    return jwt.encode(claims, private_key, algorithm="EdDSA", headers={"kid": key_id})
