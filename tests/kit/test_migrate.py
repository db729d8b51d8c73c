"""kit.migrate: parallel starts, quick warm starts, and models that are what the migrations make."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import MetaData, text

from deploy.local.ports import free_ports
from kit import migrate
from kit.db import Database, DatabaseUnavailable
from tests.kit.tables import Base


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
    differences = "\n".join(migrate.drift(empty_url, Base.metadata))
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
