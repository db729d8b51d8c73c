"""A base backup, an archive of WAL, and servers restored from them: PostgreSQL's own programs and nothing else."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg2
from psycopg2 import sql

from deploy.local.ports import free_ports
from deploy.local.postgres import Postgres
from deploy.local.waiting import wait_until

ARCHIVE_SECONDS: Final = 5
"""WAL is archived at the latest after this time, full or not: the most that the loss of a disk takes."""
_RECOVERY_SECONDS: Final = 120
_LAST: Final = re.compile(r"last completed transaction was at log time (\S+ \S+)")


class Backups:
    """The backups of one server, in a folder that stands for another machine."""

    def __init__(self, folder: Path) -> None:
        self._archive = folder / "wal"
        self._base = folder / "base"
        self._log = folder / "recovery.log"
        self._archive.mkdir(parents=True)

    def archive(self, url: str) -> None:
        """Has the server archive its WAL from its next start on."""
        to = self._archive
        settings = {
            "archive_mode": "on",
            "archive_command": f"test ! -f {to}/%f && cp %p {to}/%f.part && mv {to}/%f.part {to}/%f",
            "archive_timeout": f"{ARCHIVE_SECONDS}s",
        }
        with closing(psycopg2.connect(url)) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                for name, value in settings.items():
                    cursor.execute(sql.SQL("ALTER SYSTEM SET {} = %s").format(sql.Identifier(name)), (value,))

    def take(self, server: Postgres) -> int:
        """Takes a base backup, in place of the one before; returns its size in bytes."""
        shutil.rmtree(self._base, ignore_errors=True)
        _run(server, "pg_basebackup", "--checkpoint=fast", "--wal-method=stream", f"--pgdata={self._base}")
        return sum(path.stat().st_size for path in self._base.rglob("*") if path.is_file())

    def archive_all(self, url: str) -> None:
        """Returns once all WAL up to now is in the archive."""
        (segment,) = _row(url, "SELECT pg_walfile_name(pg_switch_wal())")
        wait_until((self._archive / segment).exists, f"{segment} in the archive", timeout_seconds=30)

    def restore(self, data: Path, *, until: datetime | None, archives: bool = True) -> None:
        """Makes the folder of a server that will recover up to that time, or to the end of the archive. It archives its
        own WAL later, unless it is there only to be copied from.
        """
        shutil.copytree(self._base, data, symlinks=True)
        target = "" if until is None else until.isoformat()
        with (data / "postgresql.auto.conf").open("a") as file:
            file.write(f"restore_command = 'cp {self._archive}/%f %p'\n")
            file.write(f"recovery_target_time = '{target}'\nrecovery_target_action = 'promote'\n")
            if not archives:
                file.write("archive_mode = off\n")
        (data / "recovery.signal").touch()

    @contextmanager
    def recovered(self, data: Path, *, password: str) -> Iterator[tuple[Postgres, datetime]]:
        """Inside the block the restored server runs; yields it with the time of the last commit that it has."""
        with running(data, password=password, log=self._log) as server:
            yield server, self._recovered_to()

    def _recovered_to(self) -> datetime:
        found = _LAST.findall(self._log.read_text())
        if not found:
            raise RuntimeError(f"no commit was recovered:\n{self._log.read_text()[-2000:]}")
        return datetime.fromisoformat(found[-1]).astimezone(UTC)


@contextmanager
def running(data: Path, *, password: str, log: Path) -> Iterator[Postgres]:
    """Inside the block a server of this folder runs, and has recovered."""
    server = Postgres(data=data, port=free_ports(1)[0], password=password, durable=False)
    with log.open("wb") as output:
        process = subprocess.Popen(server.command(), stdout=output, stderr=output)
        try:
            wait_until(
                lambda: process.poll() is not None or _is_promoted(server),
                "PostgreSQL to recover",
                timeout_seconds=_RECOVERY_SECONDS,
            )
            if process.poll() is not None:
                raise RuntimeError(f"PostgreSQL did not recover:\n{log.read_text()[-2000:]}")
            yield server
        finally:
            process.send_signal(signal.SIGINT)  # a fast stop
            process.wait(60)


def copy_database(name: str, *, of: Postgres, to: Postgres, file: Path) -> None:
    """Replaces one database of a server by that of another one."""
    _run(of, "pg_dump", "--format=custom", "--create", f"--file={file}", name)
    _run(to, "dropdb", "--force", "--if-exists", name)
    _run(to, "pg_restore", "--create", "--exit-on-error", "--dbname=postgres", str(file))


def _is_promoted(server: Postgres) -> bool:
    return server.is_ready() and _row(server.url(), "SELECT NOT pg_is_in_recovery()") == (True,)


def _row(url: str, query: str) -> tuple[Any, ...]:
    with closing(psycopg2.connect(url)) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(query)
            row = cursor.fetchone()
    assert row is not None
    return tuple(row)


def _run(server: Postgres, program: str, *arguments: str) -> None:
    done = subprocess.run(
        server.tool(program, *arguments),
        env=os.environ | server.tool_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{program} failed:\n{done.stdout}{done.stderr}")
