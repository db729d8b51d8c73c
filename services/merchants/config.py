"""Settings of the merchants service (docs/settings.md)."""

import base64
import binascii
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from kit.config import CommaSeparated, ServiceSettings


def _master_key(text: str) -> str:
    """A Fernet key: 32 bytes in base64, either alphabet, with or without the padding; written one way."""
    standard = text.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        key = base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != 32:
        raise ValueError("expected 32 random bytes in base64 each, as `openssl rand -base64 32` prints them")
    return base64.urlsafe_b64encode(key).decode()


class MerchantsSettings(ServiceSettings):
    service: ClassVar[str] = "merchants"
    slot_connections: ClassVar[int] = 5

    master_keys: Annotated[tuple[Annotated[str, AfterValidator(_master_key)], ...], CommaSeparated] = Field(
        min_length=1,
        repr=False,
        description="comma-separated, 32 random bytes in base64 each; the first encrypts, all decrypt",
    )
    webhook_allow_private: bool = Field(
        default=False, description="allow http and non-public callback addresses; for local stacks only"
    )
