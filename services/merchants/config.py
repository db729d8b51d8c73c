"""Settings of the merchants service (docs/settings.md)."""

from typing import Annotated, ClassVar

from pydantic import Field

from kit.base.config.processes import ServiceSettings
from kit.base.config.values import CommaSeparated, Key


class MerchantsSettings(ServiceSettings):
    service: ClassVar[str] = "merchants"
    slot_connections: ClassVar[int] = 5

    master_keys: Annotated[tuple[Key, ...], CommaSeparated] = Field(
        min_length=1,
        repr=False,
        description="comma-separated, 32 random bytes in base64 each; the first encrypts, all decrypt",
    )
    webhook_allow_private: bool = Field(
        default=False, description="allow http and non-public callback addresses; for local stacks only"
    )
