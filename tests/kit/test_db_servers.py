"""kit.db.servers: several PostgreSQL servers in one URL, of which some are away or do not answer."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text

from deploy.local.ports import free_ports
from kit.db.database import Database, DatabaseUnavailable
from kit.db.prepared import Prepared
from kit.db.servers import Servers
from tests.support.servers import PostgresServer

ONE = Prepared("one", "SELECT 1", {}, int)


@pytest.fixture
def several(url: str) -> Iterator[Callable[..., Database]]:
    """`several(5432, 5433)`: the database at servers with these ports, in this order."""
    made: list[Database] = []

    def make(*ports: int | None) -> Database:
        server = urlsplit(url)
        hosts = ",".join(["127.0.0.1"] * len(ports))
        database = Database(
            f"postgresql://{server.username}:{server.password}@{server.path}?host={hosts}"
            f"&port={','.join(map(str, ports))}&target_session_attrs=read-write",
            name="tests",
            pool_size=2,
        )
        made.append(database)
        return database

    yield make
    for database in made:
        database.dispose()


class Silent:
    """A server whose machine is frozen: it accepts and does not answer."""

    def __init__(self) -> None:
        self.connections: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed
            while True:
                self.connections.append(self._listening.accept()[0])

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        for each in (self._listening, *self.connections):
            each.close()


@pytest.fixture
def silent() -> Iterator[Silent]:
    server = Silent()
    yield server
    server.close()


def test_the_server_that_answers_is_used(url: str, several: Callable[..., Database]) -> None:
    """By both kinds of connections: those of the pool and those of hot statements."""
    database = several(free_ports(1)[0], urlsplit(url).port)
    database.ping()
    assert database.one_or_none(ONE, {}) == 1


def test_one_port_is_that_of_all_servers(url: str) -> None:
    """As libpq reads it. Ports that fit no servers are an error that says so."""
    server = urlsplit(url)
    address = f"postgresql://{server.username}:{server.password}@{server.path}?host="
    with closing(Servers(f"{address}127.0.0.1,127.0.0.1&port={server.port}").connect()) as connection:
        assert connection.info.port == server.port
    with pytest.raises(ValueError, match="3 hosts, but 2 ports"):
        Servers(f"{address}a,b,c&port=1,2")


def test_each_server_that_is_away_is_named(several: Callable[..., Database]) -> None:
    first, second = free_ports(2)
    away = several(first, second)
    each_is_named = rf"port {first} failed.*port {second} failed"
    with pytest.raises(DatabaseUnavailable, match=each_is_named):
        away.ping()
    with pytest.raises(DatabaseUnavailable, match=each_is_named):
        away.one_or_none(ONE, {})


def test_only_the_first_connection_waits_for_a_server_that_does_not_answer(
    url: str, several: Callable[..., Database], silent: Silent
) -> None:
    """After a failover each connection of a process would wait for seconds, and each holds a call."""
    database = several(silent.port, urlsplit(url).port)
    with database.transaction() as tx:
        tx.execute(text("SELECT 1"))
        database.ping()
    assert database.one_or_none(ONE, {}) == 1
    assert len(silent.connections) == 1


def test_a_server_that_does_not_answer_is_asked_last_while_no_other_accepts_writes(
    several: Callable[..., Database], silent: Silent, postgres: PostgresServer, url: str
) -> None:
    """So the next primary is found without a wait."""
    database = several(silent.port, urlsplit(url).port)
    postgres.stop()
    try:
        with pytest.raises(DatabaseUnavailable):
            database.ping()
    finally:
        postgres.start()
    database.ping()
    assert len(silent.connections) == 1
