"""`python -m gateway run | settings`: see `kit.web.main`."""

from gateway.app import site
from gateway.config import GatewaySettings
from kit.web.main import main

if __name__ == "__main__":
    main("python -m gateway", GatewaySettings, site)
