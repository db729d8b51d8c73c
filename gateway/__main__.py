"""`python -m gateway run | settings`, the two subcommands of services that the gateway has too.

run       serves until it is stopped (SIGTERM: gracefully); exit code 2: settings to correct
settings  lists every setting with its default and meaning, then ends
"""

import argparse
import sys

from gateway.app import site
from gateway.config import GatewaySettings
from kit.base import config
from kit.observe import log
from kit.web.server import Server


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m gateway", description=__doc__.partition("\n\n")[2])
    parser.add_argument("mode", choices=("run", "settings"), nargs="?", default="run")
    if parser.parse_args().mode == "settings":
        for row in config.describe(GatewaySettings):
            sys.stdout.write(f"{' or '.join(row.variables)}\n    {row.default or '-'}: {row.meaning}\n")
        return
    settings = config.load(GatewaySettings)
    log.configure(settings.service, settings)
    Server(settings, site(settings)).run()


if __name__ == "__main__":
    main()
