"""`python -m console desk | dashboard [run | settings]`: see `kit.web.main`."""

import argparse

from console.app import site
from console.config import ConsoleSettings, DashboardSettings, DeskSettings
from kit.web.main import main

SETTINGS: dict[str, type[ConsoleSettings]] = {"desk": DeskSettings, "dashboard": DashboardSettings}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m console")
    parser.add_argument("surface", choices=SETTINGS)
    chosen, rest = parser.parse_known_args()
    main(f"python -m console {chosen.surface}", SETTINGS[chosen.surface], site, arguments=rest)
