"""A process waits for what it can't do without; tests/test_migrations.py says what that may be."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest
from sqlalchemy import text

import services.webhooks.migrations
from deploy.local import databases
from deploy.local.ports import free_ports
from kit.db import migrate, schema
from kit.db.database import Database
from tests.support.servers import PostgresServer
from tests.support.signing import PUBLIC_KEYS, SEAL_KEY

ROOT = Path(__file__).parents[2]


@pytest.fixture
def db(empty_url: str) -> Iterator[Database]:
    """A database without any table."""
    made = Database(empty_url, name="tests", pool_size=1)
    with made.transaction() as tx:
        tx.execute(text("DROP SCHEMA public CASCADE"))
        tx.execute(text("CREATE SCHEMA public"))
    yield made
    made.dispose()


def test_a_version_runs_on_the_schema_of_the_one_before_and_on_newer_ones(
    empty_url: str, db: Database, second: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = second("op.add_column('events', sa.Column('made_up', sa.Text()))")
    monkeypatch.setattr(schema, "versions", lambda _: folder)
    with pytest.raises(schema.SchemaBehind, match="at nothing"):
        schema.waits_for("webhooks", db)

    migrate.upgrade("webhooks", empty_url, "0001")
    assert schema.waits_for("webhooks", db) == "0002"
    with monkeypatch.context() as next_version:
        next_version.setattr(services.webhooks.migrations, "NEEDS", "0002")
        with pytest.raises(schema.SchemaBehind, match="at 0001, this version needs 0002: run migrate"):
            schema.waits_for("webhooks", db)

    migrate.upgrade("webhooks", empty_url)
    assert schema.waits_for("webhooks", db) == ""
    monkeypatch.undo()
    assert schema.waits_for("webhooks", db) == "", "the version before"
    assert not migrate.upgrade("webhooks", empty_url), "it changes nothing"


def test_a_process_waits_for_the_rights_that_come_after_the_last_migration(postgres: PostgresServer) -> None:
    """On Kubernetes it starts beside the migration, and its first query may fall between the two."""
    name, owner = "catalog_without_rights", databases.owner_of("catalog")
    for role in ("catalog", owner):
        databases.ensure_role(postgres.admin_url, role, password="service-of-tests")
    databases.create_database(postgres.admin_url, name, owner=owner)
    url, owners_url = (
        postgres.url(name, user=role, password="service-of-tests") for role in ("catalog", owner)
    )
    try:
        migrate.upgrade("catalog", owners_url, role="catalog")
        with closing(psycopg2.connect(owners_url)) as connection, connection, connection.cursor() as cursor:
            cursor.execute("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM catalog")
        db = Database(url, name="tests", pool_size=1)
        with pytest.raises(schema.SchemaBehind, match="run migrate as its owner"):
            schema.waits_for("catalog", db)
        migrate.upgrade("catalog", owners_url, role="catalog")
        assert schema.waits_for("catalog", db) == ""
        db.dispose()
    finally:
        databases.drop_database(postgres.admin_url, name)


def test_what_has_no_migrations_waits_for_none(db: Database) -> None:
    assert schema.waits_for("nonesuch", db) == ""


def serve_withdrawals(database_url: str) -> subprocess.CompletedProcess[str]:
    """A process that must end by itself."""
    (port,) = free_ports(1)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FIATGATE_")}
    return subprocess.run(
        [sys.executable, "-m", "services.withdrawals", "serve"],
        cwd=ROOT,
        env=clean
        | {
            "FIATGATE_WITHDRAWALS_DATABASE_URL": database_url,
            "FIATGATE_WITHDRAWALS_ADDRESS": f"127.0.0.1:{port}",
            "FIATGATE_FACT_PUBLIC_KEYS": ",".join(PUBLIC_KEYS),
            "FIATGATE_WITHDRAWALS_SEAL_KEYS": SEAL_KEY,
            "FIATGATE_START_SECONDS": "1",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_process_does_not_answer_before_its_schema_is_there(empty_url: str, db: Database) -> None:
    result = serve_withdrawals(empty_url)
    assert result.returncode == 1, result.stderr
    assert "this version needs 0001: run migrate" in result.stderr
    assert '"process_started"' not in result.stderr


def test_a_process_does_not_start_on_the_database_of_another_service(empty_url: str, db: Database) -> None:
    migrate.upgrade("webhooks", empty_url)
    result = serve_withdrawals(empty_url)
    assert result.returncode == 2, result.stderr
    assert (
        "this is not the database of withdrawals: it lacks accounts, corrections, refunds, transfers, "
        "withdrawal_methods, withdrawals"
    ) in result.stderr
    assert "FIATGATE_WITHDRAWALS_DATABASE_URL" in result.stderr
    for revision in ("0001", "9999"):
        with db.transaction() as tx:
            tx.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
        with pytest.raises(schema.WrongDatabase):
            migrate.upgrade("identity", empty_url)
