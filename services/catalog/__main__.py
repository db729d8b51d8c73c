"""`python -m services.catalog run | serve | work | migrate | settings` (kit.process.main)."""

from kit.process.main import main
from kit.process.service import Service
from services.catalog import rpc, workers
from services.catalog.config import CatalogSettings
from services.catalog.wiring import wire

SERVICE = Service(
    name="catalog",
    settings=CatalogSettings,
    wire=wire,
    add_to=rpc.add_to,
    slots=rpc.SLOTS,
    workers=workers.workers,
    gauges=workers.gauges,
)

if __name__ == "__main__":
    main(SERVICE)
