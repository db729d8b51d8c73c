"""`python -m services.merchants run | serve | work | migrate | settings | rotate-secrets`.

All but the last are common to all services (kit.process.main). `rotate-secrets` encrypts everything again with the
first of FIATGATE_MASTER_KEYS, then ends; docs/operations/keys.md has the whole procedure.
"""

import sys

from kit.base.config.variables import load
from kit.observe import log
from kit.process.main import main
from kit.process.service import Service
from services.merchants import rpc
from services.merchants.config import MerchantsSettings
from services.merchants.operations import api_keys
from services.merchants.wiring import wire

SERVICE = Service(
    name="merchants",
    settings=MerchantsSettings,
    wire=wire,
    add_to=rpc.add_to,
    slots=rpc.SLOTS,
)


def rotate_secrets() -> None:
    settings = load(MerchantsSettings)
    log.configure(SERVICE.name, settings)
    log.get_logger().info("secrets_rotated", resealed=api_keys.rotate_secrets(wire(settings)))


if __name__ == "__main__":
    if sys.argv[1:] == ["rotate-secrets"]:
        rotate_secrets()
    else:
        main(SERVICE)
