"""`python -m services.identity run | serve | work | migrate | settings | rotate-secrets`.

All but the last are common to all services (kit.process.main). `rotate-secrets` encrypts everything again with the
first of FIATGATE_MASTER_KEYS, then ends; docs/operations/keys.md has the whole procedure.
"""

import sys

from kit.base.config.variables import load
from kit.observe import log
from kit.process.main import main
from kit.process.service import Service
from services.identity import rpc, workers
from services.identity.config import IdentitySettings
from services.identity.operations import keys
from services.identity.wiring import wire

SERVICE = Service(
    name="identity",
    settings=IdentitySettings,
    wire=wire,
    add_to=rpc.add_to,
    actor_keys=keys.OwnKeys,
    slots=rpc.SLOTS,
    workers=workers.workers,
    gauges=workers.gauges,
)


def rotate_secrets() -> None:
    settings = load(IdentitySettings)
    log.configure(SERVICE.name, settings)
    log.get_logger().info("secrets_rotated", resealed=keys.rotate_secrets(wire(settings)))


if __name__ == "__main__":
    if sys.argv[1:] == ["rotate-secrets"]:
        rotate_secrets()
    else:
        main(SERVICE)
