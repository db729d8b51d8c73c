"""`python -m services.catalog run | serve | work | migrate | settings` (kit.process.main)."""

from kit.process.main import main
from kit.process.service import Service
from services.catalog.config import CatalogSettings
from services.catalog.rpc import CALLERS, SLOTS, add_to
from services.catalog.wiring import wire
from services.catalog.workers import gauges, workers

SERVICE = Service(
    name="catalog",
    settings=CatalogSettings,
    wire=wire,
    add_to=add_to,
    callers=CALLERS,
    slots=SLOTS,
    workers=workers,
    gauges=gauges,
)

if __name__ == "__main__":
    main(SERVICE)
