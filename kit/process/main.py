"""The main program of every service: `python -m services.invoices run | serve | work | migrate | settings`.

    run       calls and workers in one process
    serve     calls only
    work      workers only; serves health and status, so that it can be watched like the others
    migrate   brings the service's database to the newest version, then ends
    settings  lists every setting with its default and meaning, then ends

Exit codes: 0 stopped as asked, 1 failed (the supervisor starts it again), 2 settings to correct.

Health reports NOT_SERVING while one of its workers has stopped working. The name `alive` reports SERVING all the same,
for supervisors that restart a process which does not answer.

SIGTERM and SIGINT stop gracefully within `stop_seconds`: health turns NOT_SERVING, new calls are refused, calls and
workers in progress end. A second signal ends the process at once.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

from kit.base.config.processes import DatabaseSettings
from kit.base.config.variables import describe, load
from kit.observe import log
from kit.process.migrating import migrate
from kit.process.running import Process
from kit.process.service import Service


def main(service: Service[Any, Any], arguments: Sequence[str] | None = None) -> None:
    """Runs the subcommand and ends the process with its exit code."""
    given = _parser(service).parse_args(arguments)
    if given.mode == "settings":
        sys.stdout.write(_settings_table(service))
        sys.exit(0)
    if given.mode == "migrate":
        database = load(DatabaseSettings.of(service.name))
        log.configure(service.name, database)
        sys.exit(migrate(service, database))
    settings = load(service.settings)
    log.configure(service.name, settings)
    code = Process(service, settings, mode=given.mode).run()
    # Everything is closed. A thread stuck in a call or a name resolution would keep the interpreter from ending.
    sys.stderr.flush()
    os._exit(code)


def _parser(service: Service[Any, Any]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m services.{service.name}",
        description=__doc__.partition("\n\n")[2],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("mode", choices=("run", "serve", "work", "migrate", "settings"))
    return parser


def _settings_table(service: Service[Any, Any]) -> str:
    rows = describe(service.settings)
    return "".join(f"{' or '.join(row.variables)}\n    {row.default or '-'}: {row.meaning}\n" for row in rows)
