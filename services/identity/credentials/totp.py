"""Time-based one-time passwords (RFC 6238): six digits, 30 seconds, SHA-1, which every authenticator app takes."""

import hmac
from datetime import datetime
from typing import Final
from uuid import UUID

import pyotp

from kit.base.vault import Vault

STEP_SECONDS: Final = 30
DRIFT_STEPS: Final = 1
"""The clock of the phone may be this many steps before or after ours."""
ISSUER: Final = "Fiatgate"
NO_SECRET: Final = "A" * 32
"""Compared for people without TOTP, so that the work is the same; a code of it counts for nothing."""


def new_secret() -> str:
    """Returns 160 random bits in base32."""
    return pyotp.random_base32()


def sealed(vault: Vault, person_id: UUID, secret: str) -> bytes:
    """Returns the secret encrypted for this person: for another one it is none."""
    return vault.seal(f"{person_id} {secret}".encode())


def opened(vault: Vault, person_id: UUID, sealed: bytes) -> str | None:
    """Returns the person's secret; None for that of another person."""
    owner, _, secret = vault.open(sealed).decode().partition(" ")
    return secret if owner == str(person_id) else None


def uri_of(secret: str, email: str) -> str:
    """Returns otpauth://totp/…, which authenticator apps read from a QR code."""
    return pyotp.TOTP(secret, interval=STEP_SECONDS).provisioning_uri(name=email, issuer_name=ISSUER)


def step_of(secret: str, code: str, *, now: datetime) -> int | None:
    """Returns the time step whose code this is: now's, or one next to it; None when it is none of them.

    All are compared, so that the time does not depend on the code.
    """
    totp = pyotp.TOTP(secret, interval=STEP_SECONDS)
    current = int(now.timestamp()) // STEP_SECONDS
    given = code.encode("utf-8", "replace")
    found = None
    for step in range(current - DRIFT_STEPS, current + DRIFT_STEPS + 1):
        if hmac.compare_digest(totp.generate_otp(step).encode(), given):
            found = step
    return found
