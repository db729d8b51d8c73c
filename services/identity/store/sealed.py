"""Seals of what opens a session or speaks for a person (kit.base.seals), each bound to its person.

SQL under the service's role could else give one's own password, passkey or session to another person.
"""

from datetime import datetime
from typing import Final
from uuid import UUID

from kit.base.seals import Seals, canonical

SESSION: Final = "session"
PASSWORD: Final = "password"  # noqa: S105  the kind of a seal
RECOVERY_CODE: Final = "recovery code"
PASSKEY: Final = "passkey"
SIGNING_KEY: Final = "signing key of actor tokens"
API_KEY: Final = "merchant and scopes of an API key"
NOTICE: Final = "notice about an address"


def seal_of(seals: Seals, kind: str, *values: UUID | str | bytes | datetime) -> bytes:
    return seals.seal(kind, canonical(values))


def is_sealed(seals: Seals, seal: bytes | None, kind: str, *values: UUID | str | bytes | datetime) -> bool:
    return seal is not None and seals.is_right(kind, canonical(values), bytes(seal))
