"""Settings of the withdrawals service: those of every consumer of facts, and its own."""

from decimal import Decimal
from typing import ClassVar

from pydantic import Field

from kit.base.config.processes import FactSettings, FourEyesSettings
from kit.base.config.values import AddressOrNone


class WithdrawalsSettings(FactSettings, FourEyesSettings):
    service: ClassVar[str] = "withdrawals"
    slot_connections: ClassVar[int] = 7

    # CheckLedger reads the whole ledger: some seconds per million transfers. The database limits all other calls.
    call_seconds: int = Field(
        default=60,
        ge=1,
        le=600,
        description="longest call, the check of the ledger included",
    )
    ledger_check_minutes: int = Field(
        default=60,
        ge=0,
        le=10_080,
        description="time between checks of the ledger by a process; 0: never",
    )
    invoices_address: AddressOrNone = Field(
        default="",
        description="invoices, which knows what deals brought; empty: no corrections of deals and no refunds",
    )
    four_eyes_usdt: Decimal = Field(
        default=Decimal(1000),
        gt=0,
        le=1_000_000_000,
        description="withdrawals, refunds and corrections from this amount on need a second person",
    )
    test_withdrawal_seconds: int = Field(
        default=60,
        ge=0,
        le=2_592_000,
        description="in test mode: time after which a withdrawal ends by itself; 0: never",
    )
    address_wait_seconds: int = Field(
        default=86_400,
        ge=0,
        le=2_592_000,
        description="time from the addition of an address to its first use",
    )
