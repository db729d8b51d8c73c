"""Real PostgreSQL and NATS processes that a test session owns and may stop, kill and start again."""

import signal
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from deploy.local.nats import Nats
from deploy.local.ports import free_ports
from deploy.local.postgres import Postgres, clear_stale_lock
from deploy.local.waiting import wait_until
from deploy.nats_rights import OPERATOR, USERS

_STOP_SECONDS = 20
_READY_SECONDS = 30


class Server(ABC):
    """A server process on a port that stays its own over restarts."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and return when it answers; TimeoutError with the end of its log when it doesn't."""
        self._prepare()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        try:
            wait_until(self._is_ready, f"{type(self).__name__} to answer", timeout_seconds=_READY_SECONDS)
        except TimeoutError as late:
            raise TimeoutError(f"{late}; its log ends:\n{self._log.read_text()[-2000:]}") from None

    def stop(self) -> None:
        """Stop it in good order; nothing when it is not running."""
        if self._process is not None:
            self._interrupt(self._process)
            self._process.wait(_STOP_SECONDS)
            self._process = None

    def kill(self) -> None:
        """kill -9, as a crash would. Its children end by themselves; until then no other one can start on the data."""
        if self._process is not None:
            children = psutil.Process(self._process.pid).children(recursive=True)
            self._process.kill()
            self._process.wait(_STOP_SECONDS)
            psutil.wait_procs(children, timeout=_STOP_SECONDS)
            self._process = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Inside the block it runs and does nothing: connections stay open and silent."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """`stop`, then `start` on the same port and data."""
        self.stop()
        self.start()

    @abstractmethod
    def _prepare(self) -> None: ...

    @abstractmethod
    def _command(self) -> list[str]: ...

    @abstractmethod
    def _is_ready(self) -> bool: ...

    def _interrupt(self, process: subprocess.Popen[bytes]) -> None:
        process.terminate()


class PostgresServer(Server):
    """PostgreSQL without any wait for the disk: quick, and lost with the machine."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "postgres.log")
        self._server = Postgres(
            data=folder / "data", port=free_ports(1)[0], password="superuser-of-tests", durable=False
        )

    @property
    def admin_url(self) -> str:
        """The superuser's URL, for making databases; code under test gets `database_url(service)`."""
        return self._server.url()

    def url(self, database: str, *, user: str, password: str) -> str:
        return self._server.url(database, user=user, password=password)

    def _prepare(self) -> None:
        self._server.initialise()
        clear_stale_lock(self._server.data)

    def _command(self) -> list[str]:
        return self._server.command()

    def _is_ready(self) -> bool:
        return self._server.is_ready()

    def _interrupt(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGINT)  # a fast shutdown that does not wait for clients


class NatsServer(Server):
    """NATS with JetStream and the users of every deployment; what was acknowledged survives `stop` and `kill`."""

    def __init__(self, folder: Path, *, name: str = "fiatgate", routes: tuple[int, ...] = ()) -> None:
        """`name` and `routes` make it a server of a cluster: see `deploy.local.nats`."""
        folder.mkdir(parents=True, exist_ok=True)
        super().__init__(folder / "nats.log")
        self.folder = folder
        self.name = name
        passwords = {user: f"{user}-password" for user in USERS}
        self._server = Nats(
            folder=folder, port=free_ports(1)[0], passwords=passwords, name=name, routes=routes
        )

    @property
    def port(self) -> int:
        """The same after a restart."""
        return self._server.port

    @property
    def url(self) -> str:
        return self.url_of(OPERATOR)

    def url_of(self, user: str) -> str:
        """What the process of that name connects to, with its rights."""
        return self._server.url(user)

    def _prepare(self) -> None:
        self._server.write_config()

    def _command(self) -> list[str]:
        return self._server.command()

    def _is_ready(self) -> bool:
        return self._server.is_ready()
