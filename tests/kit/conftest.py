"""A database with the tables of `tests.kit.tables`, and buses that are closed again."""

import itertools
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, make_url, text

from deploy.local import databases
from kit.db import schema
from kit.db.database import Database
from kit.db.migrations.acts import TABLES
from kit.events.bus.connection import Bus
from kit.events.bus.stream import OwnStream
from kit.events.consumer import Consumer, Handler
from tests.kit.consuming import Make, note
from tests.kit.observers import watching
from tests.kit.tables import Base, Inbox, Parked
from tests.support.clock import ManualClock
from tests.support.consumers import make_consumer
from tests.support.servers import PostgresServer
from tests.support.signing import SEALS, verifier

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def empty_url(postgres: PostgresServer) -> Iterator[str]:
    """A database without tables."""
    name = f"kit_{next(_numbers)}"
    databases.ensure_role(postgres.admin_url, "kit", password="kit")
    databases.create_database(postgres.admin_url, name, owner="kit")
    yield postgres.url(name, user="kit", password="kit")
    databases.drop_database(postgres.admin_url, name)


@pytest.fixture
def second(tmp_path: Path) -> Callable[[str], Path]:
    """`second("op.execute('…')")` -> the folder of the migrations of webhooks and of a made-up second one."""

    def made(step: str) -> Path:
        first = schema.versions("webhooks")
        assert first is not None
        folder = Path(shutil.copytree(first, tmp_path / "versions", ignore=shutil.ignore_patterns("__*")))
        (folder / "0002_made_up.py").write_text(
            "import sqlalchemy as sa\nfrom alembic import op\n"
            "from kit.db.migrations.steps import index_beside_traffic\n"
            "revision, down_revision, branch_labels, depends_on = '0002', '0001', None, None\n"
            f"def upgrade():\n    {step}\n"
        )
        return folder

    return made


@pytest.fixture(scope="module")
def url(empty_url: str) -> str:
    """A database with the tables of `tests.kit.tables`."""
    engine = create_engine(make_url(empty_url).set(drivername="postgresql+psycopg2"))
    Base.metadata.create_all(engine)
    with engine.begin() as connection:
        for table in TABLES:
            connection.execute(text(table))
    engine.dispose()
    return empty_url


@pytest.fixture
def make_db(url: str) -> Iterator[Callable[..., Database]]:
    made: list[Database] = []

    def make(**options: Any) -> Database:
        database = Database(url, name="tests", pool_size=options.pop("pool_size", 4), seals=SEALS, **options)
        made.append(database)
        return database

    yield make
    for database in made:
        database.dispose()


@pytest.fixture
def db(make_db: Callable[..., Database]) -> Database:
    database = make_db()
    with database.transaction() as tx:
        tables = ", ".join(Base.metadata.tables)
        tx.execute(text(f"TRUNCATE {tables}"))
    return database


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that stands still for seconds is no silence of NATS."""
    monkeypatch.setattr("kit.events.bus.pull.SILENCE_SECONDS", 60)


@pytest.fixture
def make_bus() -> Iterator[Callable[[str], Bus]]:
    made: list[Bus] = []

    def make(nats_url: str) -> Bus:
        bus = Bus(nats_url, name="tests", stream=OwnStream(replicas=1))
        made.append(bus)
        bus.start()
        return bus

    yield make
    for bus in made:
        bus.close()


@pytest.fixture
def bus(make_bus: Callable[[str], Bus], nats_url: str) -> Bus:
    """Connected, and the stream is there."""
    made = make_bus(nats_url)
    assert made.wait_ready(10)
    return made


@pytest.fixture
def attempts() -> Iterator[list[Any]]:
    """Addresses to which a connect was attempted during the test."""
    with watching() as seen:
        yield seen


@pytest.fixture
def subject() -> str:
    return f"fiatgate.test.{uuid.uuid4().hex}"


@pytest.fixture
def make(db: Database, bus: Bus, subject: str) -> Make:
    """`make()`: a consumer that does not run."""

    def made(handler: Handler = note, **changes: Any) -> Consumer:
        usual: dict[str, Any] = {
            "db": db,
            "bus": bus,
            "inbox": Inbox,
            "parked": Parked,
            "verifier": verifier(),
            "clock": ManualClock(),
            "first_retry_seconds": 0.01,
        }
        durable = f"durable-{subject.rpartition('.')[2]}"
        make_consumer(bus, durable, subject)
        return Consumer(durable, handler, **(usual | changes))

    return made
