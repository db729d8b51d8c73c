"""A process waits for the migration of its own version; see tests/test_migrations.py for why old ones need not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from deploy.local.ports import free_ports
from kit import migrate, schema
from kit.db import Database

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


def test_a_database_must_have_the_newest_migration_of_this_version_or_a_newer_one(
    empty_url: str, db: Database
) -> None:
    with pytest.raises(schema.SchemaBehind, match="at nothing"):
        schema.require("merchants", db)

    migrate.upgrade("merchants", empty_url)
    schema.require("merchants", db)

    for revision, suffices in (("0001", False), ("9999", True)):
        with db.transaction() as tx:
            tx.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
        if suffices:
            schema.require("merchants", db)
        else:
            with pytest.raises(schema.SchemaBehind, match="at 0001"):
                schema.require("merchants", db)


def test_what_has_no_migrations_needs_none(db: Database) -> None:
    schema.require("nonesuch", db)


def test_a_process_does_not_answer_before_its_schema_is_there(empty_url: str, db: Database) -> None:
    (port,) = free_ports(1)
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FIATGATE_")}
    result = subprocess.run(
        [sys.executable, "-m", "services.withdrawals", "serve"],
        cwd=ROOT,
        env=clean
        | {
            "FIATGATE_WITHDRAWALS_DATABASE_URL": empty_url,
            "FIATGATE_WITHDRAWALS_ADDRESS": f"127.0.0.1:{port}",
            "FIATGATE_START_SECONDS": "1",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert result.returncode == 1, result.stderr
    assert "this version needs 0001: run migrate" in result.stderr
    assert '"started"' not in result.stderr
