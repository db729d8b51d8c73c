"""Settings of the merchants service (docs/settings.md)."""

from typing import Annotated, ClassVar

from pydantic import Field

from kit.base.config.processes import ServiceSettings
from kit.base.config.values import CommaSeparated, Key


class MerchantsSettings(ServiceSettings):
    service: ClassVar[str] = "merchants"
    slot_connections: ClassVar[int] = 7

    master_keys: Annotated[tuple[Key, ...], CommaSeparated] = Field(
        min_length=1,
        repr=False,
        description="comma-separated, 32 random bytes in base64; the first encrypts, all decrypt",
    )
    key_lease_milliseconds: int = Field(
        default=1000,
        ge=0,
        le=2000,
        description="time for which a gateway uses a verified key without another call; acts that stop a key "
        "take that much longer; the same in all processes of merchants; 0: a call for each request",
    )
    webhook_allow_private: bool = Field(
        default=False, description="allow http and private callback addresses; for local stacks only"
    )
