"""Settings of the gateway (DESIGN section 5)."""

from typing import ClassVar

from pydantic import Field

from kit.config import Address, BaseUrl, HostAndPort, Settings


class GatewaySettings(Settings):
    service: ClassVar[str] = "gateway"

    public_url: BaseUrl = Field(
        default="http://127.0.0.1:8080",
        description="base of payment_link, as customers' browsers reach the gateway",
    )
    gateway_bind: HostAndPort = Field(
        default="127.0.0.1:8080", description="host:port the gateway listens on"
    )
    gateway_workers: int = Field(
        default=2, ge=1, le=64, description="processes of the gateway, about one per core"
    )
    gateway_start_seconds: int = Field(
        default=10,
        ge=0,
        le=600,
        description="how long each of them waits for the services at start before it takes connections without them",
    )
    gateway_keepalive_seconds: int = Field(
        default=75,
        ge=0,
        le=3600,
        description="idle time of a client's connection; longer than the proxy's in front",
    )
    rate_limit_per_minute: int = Field(
        default=6000,
        ge=0,
        le=100_000_000,
        description="requests one API key may make in a minute, over all replicas; 0: no limit, no headers",
    )
    page_requests_per_minute: int = Field(
        default=240,
        ge=0,
        le=1_000_000,
        description="requests to the pages of one payment, and of a client for logos not remembered, per minute "
        "and process; 0: no limit",
    )
    webhook_allow_private: bool = Field(
        default=False, description="allow http and non-public callback addresses; for local stacks only"
    )
    merchants_address: Address = Field(description="host:port of the merchants service")
    catalog_address: Address = Field(description="host:port of the catalog service")
    invoices_address: Address = Field(description="host:port of the invoices service")
    withdrawals_address: Address = Field(description="host:port of the withdrawals service")
    webhooks_address: Address = Field(description="host:port of the webhooks service")
