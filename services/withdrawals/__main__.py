"""`python -m services.withdrawals run | serve | work | migrate | settings` (kit.process.main)."""

from kit.process.main import main
from kit.process.service import Service
from services.withdrawals.config import WithdrawalsSettings
from services.withdrawals.rpc import CALLERS, SLOTS, add_to
from services.withdrawals.wiring import wire
from services.withdrawals.workers import gauges, workers

SERVICE = Service(
    name="withdrawals",
    settings=WithdrawalsSettings,
    wire=wire,
    add_to=add_to,
    callers=CALLERS,
    slots=SLOTS,
    workers=workers,
    gauges=gauges,
)

if __name__ == "__main__":
    main(SERVICE)
