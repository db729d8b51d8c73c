"""Settings of the identity service (docs/settings.md)."""

from datetime import timedelta
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from kit.base.config.processes import FourEyesSettings
from kit.base.config.values import BaseUrl, CommaSeparated, Key
from services.identity.domain.people import Limits, Surface


def _smtp_url(text: str) -> str:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("smtp", "smtps") or not parts.hostname or parts.path not in ("", "/")):
        raise ValueError("expected smtp(s)://user:password@host:port")
    return text


SmtpUrlOrNone = Annotated[str, AfterValidator(_smtp_url)]


class IdentitySettings(FourEyesSettings):
    service: ClassVar[str] = "identity"
    slot_connections: ClassVar[int] = 22

    master_keys: Annotated[tuple[Key, ...], CommaSeparated] = Field(
        min_length=1,
        repr=False,
        description="comma-separated, 32 random bytes in base64; the first encrypts, all decrypt",
    )
    max_concurrent_calls: int = Field(
        default=2048,
        ge=1,
        le=10_000,
        description="calls in work or waiting in a process of identity; more are refused",
    )
    desk_url: BaseUrl = Field(description="the desk in browsers, for links and passkeys")
    dashboard_url: BaseUrl = Field(description="the dashboard in browsers, for links and passkeys")
    smtp_url: SmtpUrlOrNone = Field(
        default="",
        repr=False,
        description="smtp(s)://user:password@host:port; empty: the inviter is shown the link",
    )
    smtp_from: str = Field(
        default="", validate_default=True, description="sender of e-mails, as fiatgate@example.com"
    )
    desk_idle_minutes: int = Field(
        default=30, ge=1, le=1440, description="time after which an unused session ends"
    )
    desk_session_hours: int = Field(
        default=12,
        ge=1,
        le=168,
        description="longest session",
    )
    dashboard_idle_minutes: int = Field(
        default=60,
        ge=1,
        le=1440,
        description="time after which an unused session ends",
    )
    dashboard_session_hours: int = Field(
        default=24,
        ge=1,
        le=168,
        description="longest session",
    )
    actor_key_days: int = Field(
        default=30, ge=1, le=365, description="age at which the key of actor tokens is replaced"
    )

    key_lease_milliseconds: int = Field(
        default=1000,
        ge=0,
        le=2000,
        description="time for which a gateway uses a verified key without another call; acts that stop a key "
        "take that much longer; the same in all processes of identity; 0: a call for each request",
    )
    webhook_allow_private: bool = Field(
        default=False, description="allow http and private callback addresses; for local stacks only"
    )

    @field_validator("smtp_from")
    @classmethod
    def _mail_has_a_sender(cls, smtp_from: str, info: ValidationInfo) -> str:
        if info.data.get("smtp_url") and "@" not in smtp_from:
            raise ValueError("expected an e-mail address, because SMTP_URL is set")
        return smtp_from

    def url_of(self, surface: Surface) -> str:
        return self.desk_url if surface is Surface.DESK else self.dashboard_url

    def limits_of(self, surface: Surface) -> Limits:
        if surface is Surface.DESK:
            return Limits(timedelta(minutes=self.desk_idle_minutes), timedelta(hours=self.desk_session_hours))
        return Limits(
            timedelta(minutes=self.dashboard_idle_minutes), timedelta(hours=self.dashboard_session_hours)
        )
