"""`python -m services.invoices run | serve | work | migrate | settings` (kit.process.main)."""

from kit.process.main import main
from kit.process.service import Service
from services.invoices import rpc, workers
from services.invoices.config import InvoicesSettings
from services.invoices.wiring import wire

SERVICE = Service(
    name="invoices",
    settings=InvoicesSettings,
    wire=wire,
    add_to=rpc.add_to,
    slots=rpc.SLOTS,
    workers=workers.workers,
    companions=workers.companions,
    gauges=workers.gauges,
)

if __name__ == "__main__":
    main(SERVICE)
