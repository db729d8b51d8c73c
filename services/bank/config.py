"""Settings of the bank service."""

from typing import ClassVar

from pydantic import Field

from kit.base.config.processes import ServiceSettings
from kit.base.config.values import AddressOrNone


class BankSettings(ServiceSettings):
    service: ClassVar[str] = "bank"
    slot_connections: ClassVar[int] = 7

    invoices_address: AddressOrNone = Field(
        default="",
        description="invoices, which has the deals; empty: lines are kept and nothing is proposed",
    )
