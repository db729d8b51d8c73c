"""A whole stack on three nodes of PostgreSQL, with a proxy before each, and on three servers of NATS."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Final, Self

from deploy.local import databases
from deploy.local.home import Home
from tests.failover.patroni import NAMES, Node, Nodes
from tests.faults.arena import SETTINGS
from tests.faults.proxy import Proxies
from tests.support.nats_cluster import NatsCluster
from tests.support.stack import Stack

INVOICE_TTL_SECONDS: Final = 20
FOLLOW_SECONDS: Final = 0.1


class Arena:
    """Use as a context manager: everything is ready when the block begins, and stopped at its end."""

    def __init__(self, folder: Path) -> None:
        self._home = Home(folder / "home")
        self._home.prepare()
        self._opened = ExitStack()
        self._proxies = Proxies({name: partial(self._port_of, name) for name in NAMES})
        self.nodes = Nodes(
            folder / "nodes",
            near_ports={name: self._proxies.port(name) for name in NAMES},
            password=self._home.secrets()["postgres"],
        )
        self.nats = NatsCluster(folder / "nats")
        self.stack = Stack(self._home.folder, settings=self._settings(), durable=True)

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            opened.enter_context(self._proxies)
            opened.enter_context(self._true_to_their_servers())
            opened.enter_context(self.nodes)
            opened.enter_context(self.nats)
            self._make_databases()
            opened.callback(self.stack.stop)
            self.stack.start()
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def admin_url(self, database: str) -> str:
        """A superuser's URL of the primary, past the proxies."""
        return self.nodes.url(database)

    @contextmanager
    def silent(self, node: Node) -> Iterator[None]:
        """Inside the block no connection to a node carries anything, of clients or of other nodes, and none is closed.

        Its PostgreSQL runs on. Its Patroni stands still: it neither hears the others nor is heard by them.
        """
        self._proxies.hold(node.name)
        try:
            with node.frozen(with_postgres=False):
                yield
        finally:
            self._proxies.flow(node.name)

    @contextmanager
    def _true_to_their_servers(self) -> Iterator[None]:
        """Inside the block a proxy refuses connections while its PostgreSQL does.

        libpq tries the next server of a list when one refuses it. When one accepts and then hangs up, it gives up.
        """
        over = threading.Event()

        def follow() -> None:
            while not over.wait(FOLLOW_SECONDS):
                for node in self.nodes.all:
                    if node.is_listening():
                        self._proxies.welcome(node.name)
                    else:
                        self._proxies.refuse(node.name)

        thread = threading.Thread(target=follow, name="follow")
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _port_of(self, name: str) -> int:
        return self.nodes.named(name).port

    def _make_databases(self) -> None:
        """What a stack makes only in a server of its own."""
        secrets, admin_url = self._home.secrets(), self.admin_url("postgres")
        for service, password in secrets["databases"].items():
            databases.ensure_roles_of(
                admin_url, service, password=password, owners_password=secrets["owners"][service]
            )
            databases.ensure_database(admin_url, service, owner=databases.owner_of(service))

    def _settings(self) -> dict[str, str]:
        secrets = self._home.secrets()
        settings = SETTINGS | self.nats.settings | {"FIATGATE_INVOICE_TTL_SECONDS": str(INVOICE_TTL_SECONDS)}
        for service, password in secrets["databases"].items():
            name = f"FIATGATE_{service.upper()}"
            settings[f"{name}_DATABASE_URL"] = self.nodes.url(
                service, user=service, password=password, near=True
            )
            settings[f"{name}_MIGRATION_DATABASE_URL"] = self.nodes.url(
                service, user=databases.owner_of(service), password=secrets["owners"][service], near=True
            )
        return settings
