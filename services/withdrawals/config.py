"""Settings of the withdrawals service (DESIGN section 5): those that every service has."""

from typing import ClassVar

from kit.config import ServiceSettings


class WithdrawalsSettings(ServiceSettings):
    service: ClassVar[str] = "withdrawals"
