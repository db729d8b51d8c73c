"""The check of which events may take effect: those that their producer has signed (kit.events.signing)."""

from collections.abc import Sequence
from typing import Final, NewType
from uuid import UUID

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from kit.base.keys import decoded
from kit.events.bus.messages import Incoming
from kit.events.signing import key_id, signed_bytes

_SHOWN_CHARACTERS: Final = 20

UNKNOWN_KEY_REASON: Final = "unknown_key"
REASONS: Final = ("unsigned", UNKNOWN_KEY_REASON, "wrong_signature")

Proven = NewType("Proven", Incoming)
"""An event that may take effect. Only `Verifier.proven` makes one."""


class Unproven(Exception):
    """The event is not signed by its producer. `reason` is one of `REASONS`."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class Verifier:
    """Accepts the events that one of the producer's keys has signed."""

    def __init__(self, public_keys: Sequence[str]) -> None:
        raw = [decoded(each) for each in public_keys]
        self._keys = {key_id(each): Ed25519PublicKey.from_public_bytes(each) for each in raw}

    def proven(self, event: Incoming) -> Proven:
        """Returns the event as proven. Raises `Unproven`."""
        if not event.signature:
            raise Unproven("unsigned", "it carries no signature")
        self.check(event.subject, event.event_id, event.payload, event.signature)
        return Proven(event)

    def check(self, subject: str, event_id: UUID, payload: bytes, signature: str) -> None:
        """Raises `Unproven` unless one of the keys has signed this fact."""
        name, _, encoded = signature.partition(".")
        key = self._keys.get(name)
        if key is None:
            shown = name[:_SHOWN_CHARACTERS]
            raise Unproven(UNKNOWN_KEY_REASON, f"no key of FIATGATE_FACT_PUBLIC_KEYS has the id {shown!r}")
        try:
            key.verify(decoded(encoded), signed_bytes(subject, event_id, payload))
        except (InvalidSignature, ValueError):
            raise Unproven("wrong_signature", f"its signature is not one of key {name}") from None
