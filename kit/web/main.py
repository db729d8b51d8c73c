"""The main program of every process with an HTTP server: `python -m <process> run | settings`.

run       serves until it is stopped (SIGTERM: gracefully); exit code 2: settings to correct
settings  lists every setting with its default and meaning, then ends
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from kit.base.config.variables import describe, load
from kit.observe import log
from kit.web.config import WebSettings
from kit.web.server import Site, serve

S = TypeVar("S", bound=WebSettings)


def main(
    program: str,
    settings_type: type[S],
    site: Callable[[S], Site],
    *,
    arguments: Sequence[str] | None = None,
) -> None:
    """Runs the subcommand.

    program    as it is called: `python -m gateway`
    arguments  those after `program`; None: all of the process
    """
    parser = argparse.ArgumentParser(
        prog=program,
        description=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("mode", choices=("run", "settings"), nargs="?", default="run")
    if parser.parse_args(arguments).mode == "settings":
        for row in describe(settings_type):
            sys.stdout.write(f"{' or '.join(row.variables)}\n    {row.default or '-'}: {row.meaning}\n")
        return
    settings = load(settings_type)
    log.configure(settings.service, settings)
    serve(settings, site(settings))
