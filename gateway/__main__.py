"""`python -m gateway`: serves until it is told to stop (SIGTERM: gracefully). Exit code 2: settings to correct."""

from gateway.app import gateway
from gateway.config import GatewaySettings
from gateway.server import Server
from kit import config, log


def main() -> None:
    settings = config.load(GatewaySettings)
    log.configure(settings.service, settings)
    Server(settings, lambda: gateway(settings)).run()


if __name__ == "__main__":
    main()
