"""Settings of the desk and of the dashboard (docs/settings.md)."""

from abc import abstractmethod
from ipaddress import ip_address
from typing import Annotated, ClassVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from kit.base.config.values import Address, BaseUrl, BaseUrlOrNone, HostAndPort
from kit.web.config import WebSettings


def _site(url: str) -> str:
    """Refuses an address at which cookies or passkeys would not be safe, or not work."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.path:
        raise ValueError("expected no path: the cookie is that of the whole host")
    try:
        ip_address(host)
    except ValueError:
        pass
    else:
        raise ValueError(
            "expected a host name: passkeys do not work at an IP address; locally http://localhost:PORT"
        )
    if parts.scheme == "http" and host != "localhost" and not host.endswith(".localhost"):
        raise ValueError("expected https: only http://localhost:PORT may be without TLS")
    return url.lower()


SiteUrl = Annotated[BaseUrl, AfterValidator(_site)]


class ConsoleSettings(WebSettings):
    """The settings of both surfaces."""

    own_only: ClassVar[frozenset[str]] = WebSettings.own_only | {"requests_per_minute"}

    requests_per_minute: int = Field(
        default=600,
        ge=0,
        le=1_000_000,
        description="requests of one person, and of a network without session, per process; 0: no limit",
    )
    identity_address: Address = Field(description="host:port of the identity service")
    catalog_address: Address = Field(description="host:port of the catalog service")
    invoices_address: Address = Field(description="host:port of the invoices service")
    withdrawals_address: Address = Field(description="host:port of the withdrawals service")
    webhooks_address: Address = Field(description="host:port of the webhooks service")
    bank_address: Address = Field(description="host:port of the bank service")

    @property
    @abstractmethod
    def url(self) -> str:
        """The address at which browsers reach this surface, without a path. Passkeys belong to its host name."""


class DeskSettings(ConsoleSettings):
    service: ClassVar[str] = "console-desk"
    named: ClassVar[str] = "desk"

    bind: HostAndPort = Field(default="127.0.0.1:8081", description="host:port the desk listens on")
    desk_url: SiteUrl = Field(
        default="http://localhost:8081",
        description="the desk in browsers; passkeys belong to its host name",
    )

    internal_gateway_url: BaseUrlOrNone = Field(
        default="",
        description="inner address of the gateway, for its health; empty: unknown to the desk, PUBLIC_URL "
        "for `fiatgate status`",
    )
    internal_dashboard_url: BaseUrlOrNone = Field(
        default="",
        description="inner address of the dashboard, for its health; empty: unknown to the desk, "
        "DASHBOARD_URL for `fiatgate status`",
    )

    demo_bank: bool = Field(
        default=False,
        description="on: a button of the page Bank imports an invented bank's statement, for trials; it counts at "
        "http://localhost only",
    )

    @property
    def url(self) -> str:
        return self.desk_url


class DashboardSettings(ConsoleSettings):
    service: ClassVar[str] = "console-dashboard"
    named: ClassVar[str] = "dashboard"

    bind: HostAndPort = Field(default="127.0.0.1:8082", description="host:port the dashboard listens on")
    dashboard_url: SiteUrl = Field(
        default="http://localhost:8082",
        description="the dashboard in browsers; passkeys belong to its host name",
    )

    public_url: BaseUrl = Field(
        default="http://127.0.0.1:8080",
        description="base of payment_link: the gateway in customers' browsers",
    )
    sandbox_url: BaseUrlOrNone = Field(
        default="",
        description="dashboard of an installation in test mode, to which this one has a link; empty: none",
    )

    @property
    def url(self) -> str:
        return self.dashboard_url
