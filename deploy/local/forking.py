"""`python -m deploy.local.forking -c FILE`: supervisord, which imports the code of our programs once for all of them.

A program in Python is forked from supervisord and not executed anew, so all share the memory of what they import, and
they start sooner. No import starts a thread or opens a connection (docs/decisions/0040). In a cluster, and on systems
other than Linux, each process is executed.
"""

from __future__ import annotations

import gc
import importlib
import os
import runpy
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from sqlalchemy.orm import configure_mappers
from supervisor import supervisord
from supervisor.options import ServerOptions

from deploy.local import child
from deploy.local.supervision import INTO_LOG, read_settings
from kit.base.services import SERVICES
from kit.process.forks import hold_stops, release_stops

MODULES: Final = (
    *(f"services.{service}.__main__" for service in SERVICES),
    *("gateway.__main__", "console.__main__", "deploy.local.demo_rates"),
)
"""The modules that the programs execute."""


_FORKS: Final = sys.platform == "linux"  # macOS forbids much to a process that was forked and not executed
_PYTHON: Final = child.command(sys.executable, "-m")


class _Options(ServerOptions):  # type: ignore[misc]
    """supervisord's options, and its calls of the operating system."""

    def execve(self, filename: str, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Called in the new process of a program, in place of which it runs from then on."""
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        release_stops()
        if (
            _FORKS
            and list(argv[:3]) == ["sh", "-c", INTO_LOG]
            and list(argv[5 : 5 + len(_PYTHON)]) == _PYTHON
        ):
            _run(Path(argv[3]), Path(argv[4]), argv[5 + len(_PYTHON) :], env)
        super().execve(filename, argv, env)


def _run(log: Path, settings: Path, command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Does what executing the program would do, and ends the process."""
    code: int | None = 1
    try:
        with log.open("ab") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        child.die_with_parent(signal.SIGTERM)
        child.name_process(environment["SUPERVISOR_PROCESS_NAME"])
        os.environ.clear()
        os.environ.update({**environment, **read_settings(settings)})
        sys.argv = list(command)
        gc.enable()
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int | None) else 1
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:  # noqa: BLE001  what the interpreter does at its end
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code or 0)


def import_programs() -> None:
    """Imports the code of all programs, and leaves no work for the garbage collector: it writes to each object."""
    gc.disable()
    for name in MODULES:
        importlib.import_module(name)
        del sys.modules[name]  # the program executes it, as `python -m` does
    configure_mappers()
    gc.freeze()


def main() -> None:
    """Runs supervisord until its end."""
    child.name_process("supervisord")
    if _FORKS:
        import_programs()
    os.chdir(Path(sys.argv[-1]).parent)
    supervisord.ServerOptions = _Options
    hold_stops()
    supervisord.main()


if __name__ == "__main__":
    main()
