"""Signatures of facts: a fact that moves money counts only when the service that made it true has signed it.

NATS delivers messages that anyone on its network publishes. So the producer signs each fact with Ed25519 when it writes
the fact into its outbox, the signature travels in a header beside the payload, and a consumer verifies it
(kit.events.proof) before the fact takes effect. The signature covers the subject, the event's id and the payload:
otherwise a true payload under the id of another fact would make the inbox drop the other fact.

`python -m kit.events.signing new`, `public` and `id` make and name keys, as `fiatgate fact-keys` does
(kit.events.fact_keys).
"""

import hashlib
import secrets
from typing import Final
from uuid import UUID

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from kit.base.keys import decoded, encoded

PREFIX: Final = b"fiatgate fact v1\n"
"""Makes a signature of a fact invalid for any other kind of data."""

KEY_BYTES: Final = 32
_KEY_ID_BYTES: Final = 6


class Signer:
    """Signs facts with the producer's private key: 32 random bytes in base64."""

    def __init__(self, private_key: str) -> None:
        self._key = Ed25519PrivateKey.from_private_bytes(decoded(private_key))
        public = self._key.public_key().public_bytes_raw()
        self.key_id: Final = key_id(public)
        self.public_key: Final = encoded(public)

    def sign(self, *, subject: str, event_id: UUID, payload: bytes) -> str:
        """Returns the value of the signature's header: the key's id, a point, the signature in base64."""
        signature = self._key.sign(signed_bytes(subject, event_id, payload))
        return f"{self.key_id}.{encoded(signature)}"


def new_private_key() -> str:
    return encoded(secrets.token_bytes(KEY_BYTES))


def key_id(public_key: bytes) -> str:
    """Returns the name of a key in signatures, by which a verifier with several keys finds the right one."""
    return encoded(hashlib.sha256(public_key).digest()[:_KEY_ID_BYTES])


def signed_bytes(subject: str, event_id: UUID, payload: bytes) -> bytes:
    """Returns the bytes that the signature covers."""
    # The length ends the subject, the id has a fixed one: no two facts have the same bytes.
    name = subject.encode()
    return b"".join([PREFIX, len(name).to_bytes(4, "big"), name, event_id.bytes, payload])


if __name__ == "__main__":
    from kit.events.fact_keys import main

    main()
