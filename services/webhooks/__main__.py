"""`python -m services.webhooks run | serve | work | migrate | settings` (kit.process.main)."""

from kit.process.main import main
from kit.process.service import Service
from services.webhooks import rpc, workers
from services.webhooks.config import WebhooksSettings
from services.webhooks.wiring import wire

SERVICE = Service(
    name="webhooks",
    settings=WebhooksSettings,
    wire=wire,
    add_to=rpc.add_to,
    slots=rpc.SLOTS,
    workers=workers.workers,
    gauges=workers.gauges,
)

if __name__ == "__main__":
    main(SERVICE)
