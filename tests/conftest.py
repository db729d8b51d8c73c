"""Fixtures of every test: real PostgreSQL, real NATS, fresh migrated databases, the whole stack.

The session owns one PostgreSQL; a module gets empty databases, copied from a template that was migrated once or
used by a module before, and a NATS server of its own: streams and durable consumers would otherwise leak from module
to module.

`make test` runs the tests in several processes, each of which is a session with servers and a stack of its own.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

from deploy.local import ports
from kit.base import actors
from kit.base.services import SERVICES
from kit.events.bus.connection import Bus
from kit.events.bus.stream import OwnStream
from services.invoices.events import CONSUMERS
from tests.support.authors import act_as
from tests.support.collector import Collector
from tests.support.databases import Databases
from tests.support.receiver import Receiver
from tests.support.servers import NatsServer, PostgresServer
from tests.support.signing import SEAL_KEY
from tests.support.stack import Stack, ports_of_process

if TYPE_CHECKING:
    from tests.faults.arena import Arena

WAITS: Final = "tests/e2e/test_waits.py"
BESIDE_WAITS: Final = (
    *("tests/e2e/", "tests/tools/", "tests/mtls/test_data.py", "tests/mtls/test_nats_cluster.py"),
    *("tests/test_traces.py", "tests/mtls/test_on_a_stack.py", "tests/faults/"),
)
"""The long waits of tests/e2e begin with the first of these tests, and `WAITS`, the last of them, collects them.

The last three share a stack, and those that break it come last.
"""
LONGEST: Final = (
    *BESIDE_WAITS,
    "tests/console/",
    "tests/gateway/pay/",
    "tests/cli/",
    "tests/deploy_local/test_stack.py",
    "tests/test_docs.py",
    "tests/kit/test_process.py",
)
"""These come first, in this order: browsers and whole stacks, which keep all cores busy."""


# No test asserts a time: on a busy machine an example takes as long as it takes.
settings.register_profile("fiatgate", deadline=None)
settings.load_profile("fiatgate")


def pytest_configure() -> None:
    os.environ |= {f"FIATGATE_{service.upper()}_SEAL_KEYS": SEAL_KEY for service in SERVICES}
    act_as("tests@harness")
    first, last = ports_of_process()
    ports.choose_from(range(first, last + 1))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> float:
        if item.nodeid.startswith(WAITS):
            return len(BESIDE_WAITS) - 0.5
        return next((at for at, each in enumerate(LONGEST) if item.nodeid.startswith(each)), len(LONGEST))

    items.sort(key=place)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Rests the collector of garbage while all modules are imported, which halves the time of that. They stay to the
    end: it need not look at them at each test, which takes a fifth of the time of tests that read all sources.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(100_000, 50, 100)
        gc.enable()


class _ByFile(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """The tests of a file run in one process, and so do all of `BESIDE_WAITS`. Every second process begins at the end,
    with files that mostly wait: so these run beside the longest and not after them.
    """

    def _assign_work_unit(self, node: object) -> None:
        if self.nodes.index(node) % 2:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)

    def _split_scope(self, nodeid: str) -> str:
        file: str = super()._split_scope(nodeid)
        return BESIDE_WAITS[0] if file.startswith(BESIDE_WAITS) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadFileScheduling:
    config.option.loadscopereorder = False  # the order is that of `LONGEST`
    return _ByFile(config, log)


@pytest.fixture(autouse=True)
def _own_author() -> Iterator[None]:
    """A test leaves no author to the next one, neither of operations nor of calls."""
    yield
    actors._current.set(None)
    act_as("tests@harness")


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
            made[service] = _databases.borrow(service)
        return made[service]

    yield url
    for service, borrowed in made.items():
        _databases.give_back(service, borrowed)


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
    """The session's whole stack, seeded with the demo merchant: see tests/support/stack.py.

    The consoles have no limit of requests: all tests have one address. Keys have a lease that is short, so that acts
    that wait for its end take little time. Rates that tests set count until the last test, new addresses wait for a
    day, and withdrawals for their test, however slow the machine is.
    """
    settings = {f"FIATGATE_{surface}_REQUESTS_PER_MINUTE": "0" for surface in ("DESK", "DASHBOARD")}
    settings["FIATGATE_KEY_LEASE_MILLISECONDS"] = "300"
    settings["FIATGATE_RATES_MAX_AGE_SECONDS"] = "7200"
    settings["FIATGATE_ADDRESS_WAIT_SECONDS"] = "86400"
    settings["FIATGATE_TEST_WITHDRAWAL_SECONDS"] = "0"
    settings["FIATGATE_SANDBOX_URL"] = "https://sandbox.example"
    whole = Stack(tmp_path_factory.mktemp("stack") / "home", settings=settings)
    try:
        whole.start()
        yield whole
    finally:
        whole.stop()


@pytest.fixture(scope="session")
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


@pytest.fixture(scope="session")
def arena(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Iterator[Arena]:
    """A stack to break, with mTLS and proxies between its processes, which send their spans to the collector.

    A claim of a killed deliverer is free after 14 s in place of 34.
    """
    from tests.faults.arena import SETTINGS, Arena

    settings = {
        "FIATGATE_INVOICE_TTL_SECONDS": "10",
        "FIATGATE_WEBHOOK_LEASE_MARGIN_SECONDS": "10",
        "FIATGATE_GATEWAY_WORKERS": "2",
        "FIATGATE_TRACES_ENDPOINT": collector.url,
        "FIATGATE_LOG_LEVEL": "debug",  # a line for each call
        "OTEL_BSP_SCHEDULE_DELAY": "200",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "2",
    }
    with Arena(tmp_path_factory.mktemp("arena"), settings=SETTINGS | settings) as started:
        yield started


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A merchant's webhook endpoint that records what it gets."""
    with Receiver() as endpoint:
        yield endpoint
