"""Fixtures of every test: real PostgreSQL, real NATS, fresh migrated databases, the whole stack.

The session owns one PostgreSQL; a module gets databases of its own, copied from a template that was migrated
once, and a NATS server of its own: streams and durable consumers would otherwise leak from module to module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kit.events.bus.connection import Bus
from kit.events.bus.stream import OwnStream
from services.invoices.events import CONSUMERS
from tests.support.databases import Databases
from tests.support.receiver import Receiver
from tests.support.servers import NatsServer, PostgresServer
from tests.support.stack import Stack


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """The session's PostgreSQL. A test that stops or kills it must start it again."""
    server = PostgresServer(tmp_path_factory.mktemp("postgres"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def _databases(postgres: PostgresServer) -> Databases:
    return Databases(postgres)


@pytest.fixture(scope="module")
def database_url(_databases: Databases) -> Iterator[Callable[[str], str]]:
    """`database_url("invoices")` -> the URL of the module's own migrated database of that service.

    The role behind it is a plain one that owns this database only, as in every deployment: grants count.
    """
    made: dict[str, str] = {}

    def url(service: str) -> str:
        if service not in made:
            made[service] = _databases.fresh(service)
        return made[service]

    yield url
    for fresh in made.values():
        _databases.drop(fresh)


@pytest.fixture(scope="module")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    """The module's own NATS server, empty at first: `stop()`, `kill()`, `start()`, `restart()`, `url`."""
    server = NatsServer(tmp_path_factory.mktemp("nats"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="module")
def nats_url(nats_server: NatsServer) -> str:
    """The operator's URL of the module's own NATS server, on which everything is allowed."""
    return nats_server.url


@pytest.fixture(scope="module")
def invoices_bus(nats_server: NatsServer) -> Iterator[Bus]:
    """The stream's owner, connected to the module's own NATS server: the stream is there, facts can be published."""
    bus = Bus(
        nats_server.url_of("invoices"),
        name="invoices",
        stream=OwnStream(replicas=1, consumers=CONSUMERS),
    )
    bus.start()
    assert bus.wait_ready(15)
    yield bus
    bus.close()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The session's whole stack, seeded with the demo merchant: see tests/support/stack.py."""
    whole = Stack(tmp_path_factory.mktemp("stack") / "home")
    try:
        whole.start()
        yield whole
    finally:
        whole.stop()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A merchant's webhook endpoint that records what it gets."""
    with Receiver() as endpoint:
        yield endpoint
