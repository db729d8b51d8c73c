"""kit.db.migrate: parallel starts, quick warm starts, and models that are what the migrations make."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg2
import psycopg2.extensions
import pytest
from sqlalchemy import MetaData, text

from deploy.local import databases
from deploy.local.ports import free_ports
from deploy.local.waiting import wait_until
from kit.db import migrate
from kit.db.database import Database, DatabaseUnavailable
from tests.kit.tables import Base
from tests.support.servers import PostgresServer


@pytest.fixture
def fresh_url(postgres: PostgresServer) -> Iterator[str]:
    """A database without tables, for one test."""
    databases.ensure_role(postgres.admin_url, "kit", password="kit")
    databases.create_database(postgres.admin_url, "kit_fresh", owner="kit")
    yield postgres.url("kit_fresh", user="kit", password="kit")
    databases.drop_database(postgres.admin_url, "kit_fresh")


@pytest.fixture(scope="module")
def versions(empty_url: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Migrations written from the models by the developer's command."""
    folder = tmp_path_factory.mktemp("versions")
    migrate.new_revision(folder, empty_url, Base.metadata, "first tables")
    return folder


def test_processes_that_start_at_once_migrate_once(versions: Path, empty_url: str) -> None:
    assert not migrate.is_current(versions, empty_url)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: migrate.upgrade(versions, empty_url), range(4)))
    assert migrate.is_current(versions, empty_url)


def test_an_index_is_made_while_others_write_and_what_an_attempt_left_is_no_obstacle(
    fresh_url: str, second: Callable[[str], Path]
) -> None:
    folder = second("index_beside_traffic('ix_made_up', 'inbox', ['received_at'])")
    migrate.upgrade("webhooks", fresh_url, "0001")
    with (
        ThreadPoolExecutor(2) as pool,
        closing(psycopg2.connect(fresh_url)) as writer,
        closing(psycopg2.connect(fresh_url, options="-c lock_timeout=2s")) as other,
        writer.cursor() as writing,
        other.cursor() as writing_too,
    ):
        writing_too.execute("CREATE INDEX ix_made_up ON inbox (event_id)")  # another one by its name
        other.commit()
        writing.execute("DELETE FROM inbox")
        upgrades = [pool.submit(migrate.upgrade, folder, fresh_url) for _ in range(2)]
        wait_until(lambda: _waits_for_a_writer(other), "the index to be in the making", timeout_seconds=30)
        writing_too.execute("DELETE FROM inbox")  # a plain one would make it wait
        other.commit()
        writer.commit()
        for each in upgrades:
            each.result()
        writing.execute("SELECT indexdef FROM pg_indexes WHERE indexname = 'ix_made_up'")
        assert "received_at" in str(writing.fetchone())
    assert migrate.is_current(folder, fresh_url)


def test_a_table_that_somebody_holds_is_told_of_and_the_next_try_goes_on(
    fresh_url: str, monkeypatch: pytest.MonkeyPatch, second: Callable[[str], Path]
) -> None:
    folder = second("op.add_column('events', sa.Column('made_up', sa.Text()))")
    monkeypatch.setattr(migrate, "LOCK_TIMEOUT_SECONDS", 0.2)
    migrate.upgrade("webhooks", fresh_url, "0001")
    with closing(psycopg2.connect(fresh_url)) as holder, holder.cursor() as holding:
        holding.execute("LOCK TABLE events")
        with pytest.raises(migrate.TableInUse, match="lock timeout"):
            migrate.upgrade(folder, fresh_url)
    migrate.upgrade(folder, fresh_url)
    assert migrate.is_current(folder, fresh_url)


def _waits_for_a_writer(connection: psycopg2.extensions.connection) -> bool:
    # Each query in a transaction of its own: within one, the view does not change.
    with connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND query LIKE '%INDEX CONCURRENTLY%' AND wait_event_type = 'Lock'"
        )
        return cursor.fetchone() == (1,)


def test_what_was_written_from_the_models_is_what_the_models_say(versions: Path, empty_url: str) -> None:
    migrate.upgrade(versions, empty_url)
    assert migrate.drift(empty_url, Base.metadata) == []


def test_every_kind_of_difference_is_told(versions: Path, empty_url: str) -> None:
    migrate.upgrade(versions, empty_url)
    db = Database(empty_url, name="tests", pool_size=1)
    with db.transaction() as tx:
        tx.execute(text("ALTER TABLE note DROP CONSTRAINT ck_note_not_empty"))
        tx.execute(text("ALTER TABLE note DROP CONSTRAINT uq_note_text"))
        tx.execute(text("ALTER TABLE note ADD CONSTRAINT ck_note_forgotten CHECK (text <> 'x')"))
    differences = "\n".join(each.text for each in migrate.drift(empty_url, Base.metadata))
    assert "add_constraint" in differences
    assert "ck_note_not_empty of note is in no migration" in differences
    assert "ck_note_forgotten of note is in no model" in differences
    with db.transaction() as tx:
        tx.execute(text("ALTER TABLE note DROP CONSTRAINT ck_note_forgotten"))
        tx.execute(text("ALTER TABLE note ADD CONSTRAINT ck_note_not_empty CHECK (text <> '')"))
        tx.execute(text("ALTER TABLE note ADD CONSTRAINT uq_note_text UNIQUE (text)"))
    db.dispose()
    assert migrate.drift(empty_url, MetaData()) != []  # tables that no model knows


def test_a_service_nobody_knows_is_a_clear_error(empty_url: str) -> None:
    with pytest.raises(LookupError, match="nonesuch"):
        migrate.upgrade("nonesuch", empty_url)


def test_a_database_that_is_away_is_unavailable(versions: Path) -> None:
    with pytest.raises(DatabaseUnavailable):
        migrate.upgrade(versions, f"postgresql://kit@127.0.0.1:{free_ports(1)[0]}/none")
