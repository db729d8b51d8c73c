"""Time-based one-time passwords (RFC 6238): six digits, 30 seconds, SHA-1, which every authenticator app takes."""

import hmac
from datetime import datetime
from typing import Final
from uuid import UUID

import pyotp

from kit.base.vault import MasterKeyMissing, Vault
from kit.observe.log import get_logger

_log = get_logger()

STEP_SECONDS: Final = 30
DRIFT_STEPS: Final = 1
"""The clock of the phone may be this many steps before or after ours."""
ISSUER: Final = "Fiatgate"
NO_SECRET: Final = "A" * 32
"""Compared for people without TOTP, so that the work is the same; a code of it counts for nothing."""


def new_secret() -> str:
    """Returns 160 random bits in base32."""
    return pyotp.random_base32()


def sealed(vault: Vault, person_id: UUID, secret: str, *, confirmed_at: datetime | None = None) -> bytes:
    """Returns the secret encrypted for this person: for another one, or as confirmed at another time, it is none."""
    return vault.seal(f"{_use(person_id, confirmed_at)} {secret}".encode())


def opened(
    vault: Vault, person_id: UUID, sealed: bytes, *, confirmed_at: datetime | None = None
) -> str | None:
    """Returns the person's secret that was confirmed then, or not yet; None for any other."""
    try:
        use, _, secret = vault.open(sealed).decode().rpartition(" ")
    except (MasterKeyMissing, UnicodeDecodeError):
        _log.error("totp_not_opened", person_id=str(person_id))
        return None
    return secret if use == _use(person_id, confirmed_at) else None


def _use(person_id: UUID, confirmed_at: datetime | None) -> str:
    return f"{person_id} {confirmed_at.timestamp()}" if confirmed_at is not None else str(person_id)


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
