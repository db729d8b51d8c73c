"""Challenges for passkeys: the browser keeps one, sealed, until it answers; the database has the used ones.

So a stranger's request for a challenge writes nothing, and there is no store of open ones for strangers to fill.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from kit.base.ids import new_id
from kit.base.vault import MasterKeyMissing, Vault
from services.identity.domain.people import CHALLENGE_LASTS, Purpose, Surface

SEALED_CHARACTERS: Final = 1024


class Invalid(Exception):
    """The text is no challenge of ours, is too old, or was made for another use."""


@dataclass(frozen=True, kw_only=True)
class Use:
    """The only use of a challenge; `session_id` is None before a person is signed in."""

    purpose: Purpose
    surface: Surface
    session_id: UUID | None = None


@dataclass(frozen=True, kw_only=True)
class Challenge:
    """A challenge that came back: `challenge` are the bytes that the passkey signed."""

    id: UUID
    use: Use
    challenge: bytes
    expires_at: datetime


def seal(vault: Vault, challenge: bytes, use: Use, *, now: datetime) -> str:
    """Returns the text that the browser sends back with the answer."""
    fields = {
        "id": str(new_id()),
        "use": _text_of(use),
        "challenge": challenge.hex(),
        "expires_at": (now + CHALLENGE_LASTS).isoformat(),
    }
    return vault.seal(json.dumps(fields).encode()).decode()


def unseal(vault: Vault, sealed: str, use: Use, *, now: datetime) -> Challenge:
    """Returns the challenge, if it is for this use. Raises Invalid."""
    if len(sealed) > SEALED_CHARACTERS:
        raise Invalid
    try:
        fields = json.loads(vault.open(sealed.encode()))
        expires_at = datetime.fromisoformat(fields["expires_at"])
    except (MasterKeyMissing, ValueError, KeyError, TypeError):  # also another sealed value of this service
        raise Invalid from None
    if fields["use"] != _text_of(use) or now >= expires_at:
        raise Invalid
    return Challenge(
        id=UUID(fields["id"]),
        use=use,
        challenge=bytes.fromhex(fields["challenge"]),
        expires_at=expires_at,
    )


def _text_of(use: Use) -> str:
    return f"{use.purpose.value} {use.surface.value} {use.session_id or ''}"
