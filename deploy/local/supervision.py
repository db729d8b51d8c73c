"""The stack's processes under `supervisor`: kept alive, stopped in order, logs rotated.

supervisord is our child and dies with us; its children die with it (`deploy.local.child`), so a kill -9 of any of them
leaves no process behind. We call it over a unix socket.
"""

from __future__ import annotations

import configparser
import contextlib
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import xmlrpc.client
from collections.abc import Container, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from supervisor.xmlrpc import SupervisorTransport

from deploy.local import child
from deploy.local.errors import CannotStart
from deploy.local.home import Home
from deploy.local.plan import PREFIX, STOPPING_ORDER, Plan, Program

ROOT = Path(__file__).resolve().parents[2]
STOP_SECONDS = 35
"""How long a process may take to finish. It is more than each allows its own calls in flight, except for a picture on
its way to the gateway.
"""
_UNIX_SOCKET_PATH_MAX = 100
_SETTLED_SECONDS = 8  # longer than a process takes, on a slow machine, to find that it can't start
_EXIT_CODE_OF_SETTINGS = 2  # kit.base.config.variables
_LOG = "supervisord.log"
_LOG_MAX_BYTES = 10 * 1024 * 1024
INTO_LOG = 'set -a; . "$1"; shift; exec "$@" >> "$0" 2>&1'
"""The shell's part of a program: log, file with its own settings, command."""
_STARTED = "supervisord started with pid"


@dataclass(frozen=True)
class ProgramState:
    """The state of one process, as supervisord reports it."""

    name: str
    full_name: str  # with its group, as supervisord calls it
    state: str  # STARTING, RUNNING, BACKOFF (ended, will be tried again), FATAL, STOPPED, EXITED ...
    process_id: int | None
    started_at_seconds: int  # Unix time of its last start
    refuses_settings: bool  # it ended because of its settings, which another try will not change
    log: Path


class Supervisor:
    """One supervisord: started by `start`, or that of a stack that runs already."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None

    def configure(self, plan: Plan, *, waiting_groups: Container[str] = ()) -> None:
        """Writes the configuration file; `waiting_groups` start by `start_group`, not with supervisord."""
        parser = configparser.RawConfigParser()
        parser.read_dict(_config(plan, socket=_socket_path(self._home), waiting_groups=waiting_groups))
        with _private_file(self._home.supervisor_config) as file:
            parser.write(file)
        for program in plan.programs:
            own = (f"{name}={shlex.quote(value)}\n" for name, value in program.environment.items())
            with _private_file(_settings_file(self._home, program)) as file:
                file.writelines(own)

    def start(self, plan: Plan, *, lock: int) -> None:
        """Starts supervisord and with it all processes. It holds the data's `lock` for as long as it lives.

        It has its own session, so that the terminal's Ctrl-C does not reach it: only we stop it.
        """
        with (self._home.logs / "supervisord.out").open("ab") as output:
            self._process = subprocess.Popen(
                child.command(
                    sys.executable, "-m", "supervisor.supervisord", "-c", str(self._home.supervisor_config)
                ),
                cwd=self._home.folder,
                env={name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
                | dict(plan.environment),
                stdin=lock,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def has_died(self) -> bool:
        """Whether the supervisord started here has ended."""
        return self._process is None or self._process.poll() is not None

    def stop(self) -> None:
        """Requests the orderly stop; returns at once. `has_died` is true when it is done."""
        if self._process is not None and not self.has_died:
            self._process.terminate()

    def kill(self) -> None:
        """Kills supervisord with kill -9; the kernel then signals its children to stop."""
        if self._process is not None and not self.has_died:
            self._process.kill()
            self._process.wait()

    def programs(self) -> dict[str, ProgramState]:
        """Returns every process by name; empty while supervisord does not answer."""
        with contextlib.suppress(OSError, xmlrpc.client.Error), self._remote() as remote:
            infos = remote.supervisor.getAllProcessInfo()
            return {info["name"]: _program_state(info, self._home) for info in infos}
        return {}

    def start_group(self, group: str) -> None:
        """Starts all processes of a group; does not wait for them."""
        with self._remote() as remote:
            remote.supervisor.startProcessGroup(group, False)

    def start_program(self, name: str) -> None:
        """Starts one process that was stopped; does not wait until it is ready."""
        with self._remote() as remote:
            remote.supervisor.startProcess(self.programs()[name].full_name, False)

    def stop_program(self, name: str) -> None:
        """Stops one process in good order and leaves it stopped."""
        with self._remote() as remote:
            remote.supervisor.stopProcess(self.programs()[name].full_name, True)

    @contextlib.contextmanager
    def _remote(self) -> Iterator[Any]:
        transport = SupervisorTransport(None, None, f"unix://{_socket_path(self._home)}")
        with contextlib.closing(transport):
            yield xmlrpc.client.ServerProxy("http://localhost", transport=transport)


def _private_file(path: Path) -> TextIO:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w")


def _settings_file(home: Home, program: Program) -> Path:
    return home.folder / "settings" / f"{program.name}.env"


def trim_logs(logs: Path) -> None:
    """Copies a log of more than 10 MB to `NAME.log.1`, in place of the one before, and empties it.

    The processes append to the open file, so it is emptied and not renamed; a line written at that moment is lost.
    """
    for log in logs.glob("*.log"):
        if log.stat().st_size > _LOG_MAX_BYTES:
            shutil.copyfile(log, log.with_suffix(".log.1"))
            os.truncate(log, 0)


def last_lines(log: Path, count: int = 12) -> str:
    """Returns the last lines of a log, for people."""
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-count:])
    except FileNotFoundError:
        return "(it logged nothing)"


def _program_state(info: dict[str, Any], home: Home) -> ProgramState:
    return ProgramState(
        name=info["name"],
        full_name=f"{info['group']}:{info['name']}",
        state=info["statename"],
        process_id=info["pid"] or None,
        started_at_seconds=info["start"],
        refuses_settings=info["statename"] == "BACKOFF"
        and last_exit(home, info["name"]) == _EXIT_CODE_OF_SETTINGS,
        log=home.logs / f"{info['name']}.log",
    )


def last_exit(home: Home, program: str) -> int | None:
    """Returns the last exit code of a program under this supervisord; None when the log has none.

    supervisord's API gives no exit code of a program that ended soon after its start. The log outlives supervisord. It
    begins anew where it grew too large.
    """
    written = (home.logs / _LOG).read_text(errors="replace").rpartition(_STARTED)[2]
    exits = re.findall(rf"exited: {re.escape(program)} \((?:exit status (\d+))?", written)
    return int(exits[-1]) if exits and exits[-1] else None


def _socket_path(home: Home) -> Path:
    path = home.folder / "supervisor.sock"
    if len(str(path)) <= _UNIX_SOCKET_PATH_MAX:
        return path
    # The kernel allows some 107 bytes. The folder is our own, so that no other account can put a socket there.
    folder = Path(tempfile.gettempdir()) / f"fiatgate-{os.geteuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise CannotStart(f"{folder} belongs to another user: choose a shorter FIATGATE_HOME")
    return folder / f"{hashlib.sha256(str(home.folder).encode()).hexdigest()[:16]}.sock"


def _config(plan: Plan, *, socket: Path, waiting_groups: Container[str]) -> dict[str, dict[str, str]]:
    logs = plan.home.logs
    sections: dict[str, dict[str, str]] = {
        "supervisord": {
            "nodaemon": "true",
            "silent": "true",
            "logfile": f"{logs.name}/{_LOG}",
            "logfile_maxbytes": str(_LOG_MAX_BYTES),
            "pidfile": "supervisord.pid",
            **({"user": "root"} if os.geteuid() == 0 else {}),
        },
        "unix_http_server": {"file": _escaped(str(socket)), "chmod": "0600"},
        "rpcinterface:supervisor": {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
        },
    }
    for program in plan.programs:
        sections[f"program:{program.name}"] = _program_section(
            program, plan.home, waits=program.group in waiting_groups
        )
    for rank, group in enumerate(reversed(STOPPING_ORDER)):
        names = [program.name for program in plan.programs if program.group == group]
        sections[f"group:{group}"] = {"programs": ",".join(names), "priority": str(rank)}
    return sections


def _program_section(program: Program, home: Home, *, waits: bool) -> dict[str, str]:
    log, settings = home.logs / f"{program.name}.log", _settings_file(home, program)
    return {
        # Directly into the file: a line through supervisord's pipes costs more than the request that it describes.
        "command": _escaped(shlex.join(["sh", "-c", INTO_LOG, str(log), str(settings), *program.command])),
        "directory": _escaped(str(ROOT)),
        "autostart": "false" if waits else "true",
        "autorestart": "true",
        # A program that ends sooner is tried again after a pause, a second longer each time, without limit. One that
        # ran for longer is restarted at once.
        "startsecs": str(_SETTLED_SECONDS),
        "startretries": "1000000",
        "stopsignal": program.stop_signal,
        "stopwaitsecs": str(STOP_SECONDS),
        "killasgroup": "true",
        "redirect_stderr": "true",
        "stdout_logfile": "NONE",
    }


def _escaped(text: str) -> str:
    if " ;" in text or " #" in text:  # supervisor would read the rest as a comment
        raise CannotStart(f"supervisor can't take ' ;' or ' #' in a path: {text}")
    return text.replace("%", "%%")
