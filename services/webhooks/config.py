"""Settings of the webhooks service (docs/settings.md)."""

from typing import Annotated, ClassVar

from pydantic import Field, ValidationInfo, field_validator

from kit.base.config.processes import FactSettings
from kit.base.config.values import Address, CommaSeparated
from kit.rpc.limits import OUTWARD_CALL_SECONDS
from services.webhooks.domain import RETRY_DELAYS_SECONDS

CALL_MARGIN_SECONDS = 5
"""The part of a resend's call that is not its attempt."""


class WebhooksSettings(FactSettings):
    service: ClassVar[str] = "webhooks"
    slot_connections: ClassVar[int] = 5
    # A resend uses the database for some milliseconds before and after the wait for its receiver.
    threads_per_connection: ClassVar[int] = 16

    # Resends wait for receivers: they need many idle threads, and calls longer than the delivery timeout.
    threads: int = Field(
        default=64,
        ge=2,
        le=256,
        description="threads for manual resends, which wait for receivers",
    )
    pool_size: int = Field(
        default=20,
        ge=1,
        le=200,
        description="database connections of a process for resends and workers, at least THREADS / 16; other "
        "calls have 5 more",
    )
    call_seconds: int = Field(
        default=30,
        ge=1,
        le=180,
        description="longest call; a resend takes up to WEBHOOK_TIMEOUT_SECONDS",
    )
    identity_address: Address = Field(description="host:port of the identity service")
    webhook_retry_delays: Annotated[tuple[Annotated[int, Field(ge=1, le=604_800)], ...], CommaSeparated] = (
        Field(
            default=RETRY_DELAYS_SECONDS,
            max_length=50,
            description="seconds from each failed attempt to the next",
        )
    )
    webhook_timeout_seconds: int = Field(
        default=15,
        ge=1,
        le=OUTWARD_CALL_SECONDS - CALL_MARGIN_SECONDS,
        description="longest attempt",
    )
    webhook_lease_margin_seconds: int = Field(
        default=30,
        ge=1,
        le=600,
        description="time beyond two attempts after which the events of a dead worker are sent again",
    )
    webhook_resend_cooldown_seconds: int = Field(
        default=60, ge=0, le=86_400, description="time between two resends of an event"
    )
    webhook_retention_days: int = Field(
        default=90,
        ge=0,
        le=36_500,
        description="least time to keep attempts; then their month is dropped; 0: for ever",
    )
    webhook_allow_private: bool = Field(
        default=False, description="allow http and private callback addresses; for local stacks only"
    )

    @field_validator("webhook_timeout_seconds")
    @classmethod
    def _a_resend_fits_into_a_call(cls, seconds: int, info: ValidationInfo) -> int:
        if seconds + CALL_MARGIN_SECONDS > info.data.get("call_seconds", seconds + CALL_MARGIN_SECONDS):
            raise ValueError(
                f"expected at most CALL_SECONDS less {CALL_MARGIN_SECONDS}, or resends would be cut off"
            )
        return seconds

    @property
    def lease_seconds(self) -> int:
        """How long a claim is valid: a wait in a lane, an attempt, its body, and clocks that differ."""
        return 2 * self.webhook_timeout_seconds + self.webhook_lease_margin_seconds
