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

    merchants_address: Address = Field(description="host:port of the merchants service")
    catalog_address: Address = Field(description="host:port of the catalog service")
    fact_signing_key: Key = Field(
        repr=False,
        description="signs the facts that move money, 32 random bytes in base64; FACT_PUBLIC_KEYS has its "
        "public key",
    )
    fact_public_keys: Annotated[tuple[Key, ...], CommaSeparated] = Field(
        default=(),
        repr=False,
        description="comma-separated, public keys of earlier FACT_SIGNING_KEYs: facts signed with them can "
        "be announced again; that of FACT_SIGNING_KEY always counts",
    )
    invoice_ttl_seconds: int = Field(
        default=1800, ge=1, le=604_800, description="time for choosing a payment method, seconds"
    )
    customer_limit: int = Field(
        default=5, ge=1, le=10_000, description="unpaid invoices one customer may have within the window"
    )
    customer_window_minutes: int = Field(
        default=60, ge=1, le=43_200, description="window of CUSTOMER_LIMIT, minutes"
    )
    confirmation_minutes: int = Field(
        default=60,
        ge=1,
        le=43_200,
        description="time after which a deal that is marked paid becomes an appeal, minutes",
    )

    method_share_percent: int = Field(
        default=80,
        ge=1,
        le=100,
        description="largest share that one merchant may hold of the places of a payment method that no "
        "other merchant holds, and of its accounts for one amount; 100 is no limit",
    )
    nats_replicas: int = Field(
        default=1,
        ge=1,
        le=5,
        description="servers that keep a copy of the stream, at most as many as the NATS cluster has; an "
        "existing stream gets more, never fewer",
    )
    cell: int = Field(
        default=0,
        ge=0,
        le=MOST_CELL,
        description="number of this stack among several that share the merchants; the last two digits of new "
        "invoice ids, in hexadecimal",
    )

    @property
    def invoice_ttl(self) -> timedelta:
        return timedelta(seconds=self.invoice_ttl_seconds)

    @property
    def confirmation_time(self) -> timedelta:
        return timedelta(minutes=self.confirmation_minutes)

    @property
    def limit_per_customer(self) -> CustomerLimit:
        return CustomerLimit(self.customer_limit, timedelta(minutes=self.customer_window_minutes))
