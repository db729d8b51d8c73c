"""Settings of the gateway (docs/settings.md)."""

from typing import ClassVar

from pydantic import Field

from kit.base.config.values import Address, BaseUrl, HostAndPort
from kit.web.config import WebSettings


class GatewaySettings(WebSettings):
    service: ClassVar[str] = "gateway"

    bind: HostAndPort = Field(default="127.0.0.1:8080", description="host:port the gateway listens on")
    public_url: BaseUrl = Field(
        default="http://127.0.0.1:8080",
        description="base of payment_link: the gateway in customers' browsers",
    )
    rate_limit_per_minute: int = Field(
        default=6000,
        ge=0,
        le=100_000_000,
        description="requests of one API key per process, each 4 KiB of body counted; 0: no limit, no headers",
    )
    page_requests_per_minute: int = Field(
        default=240,
        ge=0,
        le=1_000_000,
        description="requests for the pages of one payment, and of a network for logos, per process; 0: no "
        "limit",
    )
    network_page_requests_per_minute: int = Field(
        default=3000,
        ge=0,
        le=10_000_000,
        description="requests of one network for payment pages, per process; 0: no limit",
    )
    strangers_per_minute: int = Field(
        default=120,
        ge=0,
        le=1_000_000,
        description="requests of one network for unknown keys, payments and colours, per process; 0: no limit",
    )
    upload_mib: int = Field(
        default=32,
        ge=6,
        le=4096,
        description="MiB of customers' pictures under way in a process",
    )
    upload_network_mib: int = Field(
        default=16,
        ge=6,
        le=4096,
        description="MiB of those from one network",
    )
    webhook_allow_private: bool = Field(
        default=False, description="allow http and private callback addresses; for local stacks only"
    )
    identity_address: Address = Field(description="host:port of the identity service")
    catalog_address: Address = Field(description="host:port of the catalog service")
    invoices_address: Address = Field(description="host:port of the invoices service")
    withdrawals_address: Address = Field(description="host:port of the withdrawals service")
    webhooks_address: Address = Field(description="host:port of the webhooks service")
    bank_address: Address = Field(description="host:port of the bank service, for the feed")
