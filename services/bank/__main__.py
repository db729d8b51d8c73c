"""`python -m services.bank run | serve | work | migrate | settings` (kit.process.main)."""

from kit.process.main import main
from kit.process.service import Service
from services.bank import rpc, workers
from services.bank.config import BankSettings
from services.bank.wiring import wire

SERVICE = Service(
    name="bank",
    settings=BankSettings,
    wire=wire,
    add_to=rpc.add_to,
    slots=rpc.SLOTS,
    workers=workers.workers,
    gauges=workers.gauges,
)

if __name__ == "__main__":
    main(SERVICE)
