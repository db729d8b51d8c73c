"""Settings of the invoices service (docs/settings.md)."""

from datetime import timedelta
from typing import Annotated, ClassVar

from pydantic import Field

from kit.base.config.processes import FourEyesSettings
from kit.base.config.values import Address, CommaSeparated, Key
from kit.base.ids import MOST_CELL
from services.invoices.domain.creating import CustomerLimit


class InvoicesSettings(FourEyesSettings):
    service: ClassVar[str] = "invoices"
    slot_connections: ClassVar[int] = 20

    identity_address: Address = Field(description="host:port of the identity service")
    catalog_address: Address = Field(description="host:port of the catalog service")
    fact_signing_key: Key = Field(
        repr=False,
        description="signs facts, 32 random bytes in base64",
    )
    fact_public_keys: Annotated[tuple[Key, ...], CommaSeparated] = Field(
        default=(),
        repr=False,
        description="comma-separated, public keys of earlier FACT_SIGNING_KEYs, for old facts",
    )
    invoice_ttl_seconds: int = Field(
        default=1800, ge=1, le=604_800, description="time to choose a payment method"
    )
    customer_limit: int = Field(
        default=5, ge=1, le=10_000, description="unpaid invoices of one customer within the window"
    )
    customer_window_minutes: int = Field(default=60, ge=1, le=43_200, description="window of CUSTOMER_LIMIT")
    confirmation_minutes: int = Field(
        default=60,
        ge=1,
        le=43_200,
        description="time after which a deal marked paid becomes an appeal",
    )
    late_money_answer_hours: int = Field(
        default=72,
        ge=1,
        le=720,
        description="time that a merchant has to say whether late money is credited or returned",
    )

    method_share_percent: int = Field(
        default=80,
        ge=1,
        le=100,
        description="largest share of a method's places, and of its accounts for an amount, that one "
        "merchant may hold; 100: no limit",
    )
    nats_replicas: int = Field(
        default=1,
        ge=1,
        le=5,
        description="servers that keep the stream; it gets more, never fewer",
    )
    cell: int = Field(
        default=0,
        ge=0,
        le=MOST_CELL,
        description="number of this stack among several; the last two hexadecimal digits of its invoice ids",
    )

    @property
    def invoice_ttl(self) -> timedelta:
        return timedelta(seconds=self.invoice_ttl_seconds)

    @property
    def confirmation_time(self) -> timedelta:
        return timedelta(minutes=self.confirmation_minutes)

    @property
    def late_money_answer_time(self) -> timedelta:
        return timedelta(hours=self.late_money_answer_hours)

    @property
    def limit_per_customer(self) -> CustomerLimit:
        return CustomerLimit(self.customer_limit, timedelta(minutes=self.customer_window_minutes))
