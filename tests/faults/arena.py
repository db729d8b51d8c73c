"""A whole stack with mTLS and a proxy in each of its connections, and the hand that makes things go wrong in it."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit, urlunsplit

import psutil

from deploy.local import databases
from deploy.local.home import Home
from deploy.local.ports import free_ports
from deploy.local.postgres import Postgres
from deploy.local.waiting import wait_until
from deploy.nats_rights import PROCESSES as NATS_USERS
from kit.base.services import SERVICES
from kit.base.tls import Files
from tests.faults import triggers
from tests.faults.plan import ROWS, Fault, Kind
from tests.faults.proxy import Proxies
from tests.support.certificates import PROCESSES, Authority
from tests.support.stack import Stack

INVOICE_TTL_SECONDS: Final = 5
_CERTIFICATES_LAST: Final = timedelta(days=2)
DELIVERY_SECONDS: Final = 2
# The documented eight attempts, sooner one after the other; a claim of a killed worker is free after 34 s.
SETTINGS: Final = {
    "FIATGATE_INVOICE_TTL_SECONDS": str(INVOICE_TTL_SECONDS),
    "FIATGATE_WEBHOOK_TIMEOUT_SECONDS": str(DELIVERY_SECONDS),
    "FIATGATE_WEBHOOK_RETRY_DELAYS": "1,1,1,2,2,3,3",
}
_POSTGRES_SECONDS: Final = 60


class Arena:
    """Use as a context manager: started when the block begins, everything stopped at its end.

    PostgreSQL and NATS wait for the disk, as they do for everybody. Without (`synchronous_commit = off`) a kill -9
    loses what was answered a moment before; the checker found that the first time it was tried.
    """

    def __init__(self, folder: Path, *, settings: Mapping[str, str] = SETTINGS) -> None:
        self._home = Home(folder / "home")
        self._home.prepare()
        self._opened = ExitStack()
        inner: dict[str, int] = {}
        self._proxies = Proxies(
            {
                **{service: partial(inner.__getitem__, service) for service in SERVICES},
                "postgres": self._postgres_upstream,
                "nats": self._nats_upstream,
            }
        )
        # Other ones than the proxies have, which listen already.
        health_port, *service_ports = free_ports(1 + len(SERVICES))
        inner |= zip(SERVICES, service_ports, strict=True)
        self.authority = Authority()
        self.certificates = {name: self.certificate(name, lasting=_CERTIFICATES_LAST) for name in PROCESSES}
        self.services = {service: f"127.0.0.1:{port}" for service, port in inner.items()}
        self.stack = Stack(
            self._home.folder,
            settings={
                **settings,
                **self._addresses(),
                "FIATGATE_INVOICES_HEALTH_BIND": f"127.0.0.1:{health_port}",  # without TLS, for probes
            },
            durable=True,
            certificates=self.certificates,
        )

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            self._make_databases()
            opened.enter_context(self._proxies)
            opened.callback(self.stack.stop)
            self.stack.start()
            for service, table, operation in ROWS:
                triggers.install(self.admin_url(service), table, operation)
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def certificate(self, process: str, *, lasting: timedelta) -> Files:
        """A new one, at once in use by the process."""
        return self.authority.issue(self._home.folder.parent / process, process, lasting=lasting)

    def admin_url(self, database: str) -> str:
        """A superuser's URL, past the proxy: the checker sees all and changes nothing."""
        parts = urlsplit(str(self._home.running_stack()["postgres_url"]))
        return urlunsplit(parts._replace(path=f"/{database}"))

    def do(self, fault: Fault) -> None:
        """Do it; returns when it is over, which does not mean that the stack has recovered."""
        if fault.kind is Kind.KILL:
            self._kill(fault.target)
            if fault.seconds:
                with suppress(TimeoutError):
                    self.stack.wait_until_ready(fault.seconds)
        elif fault.kind is Kind.PAUSE:
            with self.paused(fault.target):
                threading.Event().wait(fault.seconds)
        elif fault.kind is Kind.CUT:
            self._proxies.cut(fault.target)
        elif fault.kind is Kind.HOLD:
            with self.held(fault.target):
                threading.Event().wait(fault.seconds)
        elif fault.kind is Kind.UNANSWERED:
            self._proxies.lose_answers(fault.target)
            threading.Event().wait(fault.seconds)
            self._proxies.cut(fault.target)
        elif fault.kind is Kind.AWAY:
            self.stack.stop_program(fault.target)
            threading.Event().wait(fault.seconds)
            self.stack.start_program(fault.target)
        elif fault.kind is Kind.LOSE:
            self.stack.stop_program("nats")
            self.lose_jetstream()
            self.stack.start_program("nats")
        else:
            service, table, operation = fault.target.split()
            triggers.arm(self._answering_admin_url(service), table, operation)

    @contextmanager
    def held(self, link: str) -> Iterator[None]:
        """Inside the block nothing moves on a link."""
        self._proxies.hold(link)
        try:
            yield
        finally:
            self._proxies.flow(link)

    def lose_jetstream(self) -> None:
        """Delete all that NATS has stored; it must be stopped."""
        (folder,) = self._home.nats.glob("jetstream")
        for path in sorted(folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()

    def _kill(self, target: str) -> None:
        with suppress(psutil.NoSuchProcess):
            processes = self._processes(target)
            processes[0].kill()

    @contextmanager
    def paused(self, target: str) -> Iterator[None]:
        """Inside the block it is stopped as by SIGSTOP."""
        with suppress(psutil.NoSuchProcess):
            processes = self._processes(target)
            try:
                for process in processes:
                    process.send_signal(signal.SIGSTOP)
                yield
            finally:
                for process in processes:
                    with suppress(psutil.NoSuchProcess):
                        process.send_signal(signal.SIGCONT)

    def _processes(self, target: str) -> list[psutil.Process]:
        """The one to kill first; PostgreSQL's children work for it, the gateway's are what is meant."""
        name = "gateway" if target == "gateway worker" else target
        wait_until(lambda: self._process_id(name) is not None, f"{name} to run", timeout_seconds=60)
        process_id = self._process_id(name)
        assert process_id is not None
        main = psutil.Process(process_id)
        children = main.children(recursive=True)
        if target == "gateway worker":
            return children[:1] or [main]
        return [main, *children]

    def _process_id(self, name: str) -> int | None:
        state = self.stack.programs().get(name)
        return None if state is None else state.process_id

    def _answering_admin_url(self, database: str) -> str:
        wait_until(self._postgres.is_ready, "PostgreSQL to answer", timeout_seconds=_POSTGRES_SECONDS)
        return self.admin_url(database)

    @cached_property
    def _postgres(self) -> Postgres:
        parts = urlsplit(str(self._home.running_stack()["postgres_url"]))
        assert parts.port is not None
        return Postgres(
            data=self._home.postgres / "data", port=parts.port, password=self._home.secrets()["postgres"]
        )

    def _make_databases(self) -> None:
        """What `deploy.local.schema` makes only in a server that it knows for the stack's own, by its address."""
        server = Postgres(
            data=self._home.postgres / "data",
            port=free_ports(1)[0],
            password=self._home.secrets()["postgres"],
            durable=False,
        )
        server.initialise()
        process = subprocess.Popen(server.command(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            wait_until(server.is_ready, "PostgreSQL to answer", timeout_seconds=_POSTGRES_SECONDS)
            for service, password in self._home.secrets()["databases"].items():
                owner = databases.owner_of(service)
                owners_password = self._home.secrets()["owners"][service]
                databases.ensure_roles_of(
                    server.url(), service, password=password, owners_password=owners_password
                )
                databases.ensure_database(server.url(), service, owner=owner)
        finally:
            process.send_signal(signal.SIGINT)  # a fast stop, which writes all of it to the disk
            process.wait(_POSTGRES_SECONDS)

    def _postgres_upstream(self) -> int:
        return self._postgres.port

    def _nats_upstream(self) -> int:
        port: int = json.loads((self._home.nats / "nats.json").read_text())["port"]
        return port

    def _addresses(self) -> dict[str, str]:
        """Settings that lead every connection through its proxy."""
        settings = {
            f"FIATGATE_{user.upper()}_NATS_URL": f"nats://{user}:{password}@127.0.0.1:{self._proxies.port('nats')}"
            for user, password in self._home.secrets()["nats"].items()
            if user in NATS_USERS
        }
        for service, password in self._home.secrets()["databases"].items():
            name = f"FIATGATE_{service.upper()}"
            database = f"127.0.0.1:{self._proxies.port('postgres')}/{service}"
            settings[f"{name}_DATABASE_URL"] = f"postgresql://{service}:{password}@{database}"
            owner = f"{databases.owner_of(service)}:{self._home.secrets()['owners'][service]}"
            settings[f"{name}_MIGRATION_DATABASE_URL"] = f"postgresql://{owner}@{database}"
            settings[f"{name}_ADDRESS"] = f"127.0.0.1:{self._proxies.port(service)}"
            settings[f"{name}_BIND"] = self.services[service]
        return settings
