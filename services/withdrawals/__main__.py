"""`python -m services.withdrawals run | serve | work | migrate | settings` (kit.process.main)."""

from kit.process.main import main
from kit.process.service import Service
from services.withdrawals import rpc, workers
from services.withdrawals.config import WithdrawalsSettings
from services.withdrawals.wiring import wire

SERVICE = Service(
    name="withdrawals",
    settings=WithdrawalsSettings,
    wire=wire,
    add_to=rpc.add_to,
    slots=rpc.SLOTS,
    workers=workers.workers,
    gauges=workers.gauges,
)

if __name__ == "__main__":
    main(SERVICE)
