"""Schemas and versions come in any order (docs/operations.md, Upgrades): the version before runs on the new schema, and
this version on the schema of the one before. tests/rolling upgrades a running system.

A migration only adds. What takes away, or asks more of rows than the version before gives, is split over two versions:
first nobody needs it any more, then it goes. What a version adds its own code does without.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psycopg2
import pytest

from kit.base.ids import new_id
from kit.db import migrate, schema
from kit.db.database import Database
from tests.support.databases import Databases, owner_url

ROOT: Final = Path(__file__).resolve().parents[1]
# The first one of each service makes its tables: there is no version before it.
LATER: Final = sorted(
    path for path in ROOT.glob("services/*/migrations/versions/*.py") if not path.name.startswith("0001")
)
ADDS: Final = {"add_column", "create_table", "create_index", "create_foreign_key", "f", "get_bind"}
TAKES_AWAY: Final = ("drop ", "rename ", "set not null", "alter column")


def breaks(source: str) -> Iterator[str]:
    """What the version before would run into, one line each."""
    (upgrade,) = [
        node
        for node in ast.parse(source).body
        if isinstance(node, ast.FunctionDef) and node.name == "upgrade"
    ]
    calls = [node for node in ast.walk(upgrade) if isinstance(node, ast.Call)]
    added = {column for call in calls if ast.unparse(call.func) == "op.add_column" for column in _names(call)}
    for call in calls:
        name = ast.unparse(call.func)
        if name == "op.execute":
            text = ast.unparse(call).lower()
            yield from (f"{word.strip()}: {text[:80]}" for word in TAKES_AWAY if word in text)
        elif name == "op.create_check_constraint":
            if not any(column in ast.unparse(call.args[2]) for column in added):
                yield f"{name} of what the version before writes"
        elif name.startswith("op.") and name.removeprefix("op.") not in ADDS:
            yield name
        elif name == "op.create_index" and "unique=True" in ast.unparse(call):
            yield f"{name} of what the version before may write twice"
        elif name == "op.add_column":
            column = ast.unparse(call.args[1])
            if "unique=True" in column or ("nullable=False" in column and "server_default" not in column):
                yield f"the version before inserts no {column}"


def _names(add_column: ast.Call) -> Iterator[str]:
    column = add_column.args[1]
    assert isinstance(column, ast.Call)
    assert isinstance(column.args[0], ast.Constant)
    yield str(column.args[0].value)


@pytest.mark.parametrize("migration", LATER, ids=lambda path: f"{path.parts[-4]}-{path.stem}")
def test_a_migration_takes_nothing_away_from_the_version_before(migration: Path) -> None:
    assert list(breaks(migration.read_text())) == []


@pytest.mark.parametrize(
    "step",
    [
        'op.drop_column("invoices", "purpose")',
        'op.alter_column("invoices", "purpose", nullable=False)',
        'op.execute("ALTER TABLE invoices DROP COLUMN purpose")',
        'op.execute("ALTER TABLE invoices RENAME TO bills")',
        'op.add_column("invoices", sa.Column("colour", sa.Text(), nullable=False))',
        'op.create_unique_constraint("uq", "invoices", ["purpose"])',
        'op.create_index("ux", "invoices", ["purpose"], unique=True)',
        'op.create_check_constraint("ck", "invoices", "char_length(purpose) < 10")',
    ],
)
def test_one_that_does_is_noticed(step: str) -> None:
    assert list(breaks(f"def upgrade() -> None:\n    {step}\n"))


# -- this version on the schema of the one before

SERVICES: Final = sorted(path.parent.name for path in ROOT.glob("services/*/migrations"))


def models_of(service: str) -> Any:
    return importlib.import_module(f"services.{service}.models").Base.metadata


@pytest.fixture(scope="module")
def before(_databases: Databases) -> Iterator[Callable[[str], str]]:
    """`before("invoices")` -> the URL of a database with what the service needs and no more."""
    made: list[str] = []

    def url(service: str) -> str:
        made.append(_databases.fresh(service, schema.needs(service)))
        return made[-1]

    yield url
    for each in made:
        _databases.drop(each)


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_can_do_without_what_its_newest_migration_brings(
    before: Callable[[str], str], service: str
) -> None:
    lacking = migrate.drift(before(service), models_of(service))

    assert [each for each in lacking if each.kind != "add_index"] == [], (
        "models name only what NEEDS has, until the next version (docs/decisions/0025)"
    )


@pytest.mark.parametrize("service", SERVICES)
def test_what_the_models_say_is_what_the_migrations_make(
    database_url: Callable[[str], str], service: str
) -> None:
    is_ahead = migrate.head(service) != schema.needs(service)
    differences = migrate.drift(database_url(service), models_of(service))

    assert [each for each in differences if not (is_ahead and each.kind.startswith("remove_"))] == []


@pytest.mark.parametrize("service", SERVICES)
def test_a_service_runs_on_its_schema_and_on_the_one_before(
    before: Callable[[str], str], database_url: Callable[[str], str], service: str
) -> None:
    for url, waits_for in (
        (before(service), {str(migrate.head(service))} - {schema.needs(service)}),
        (database_url(service), set[str]()),
    ):
        db = Database(url, name="tests", pool_size=1)
        assert {schema.waits_for(service, db)} - {""} == waits_for
        db.dispose()


def test_a_signed_fact_is_kept_while_migrate_has_not_granted_the_rights_on_its_table_yet(
    _databases: Databases,
) -> None:
    url = _databases.fresh("invoices", "0006")
    migrate.upgrade("invoices", owner_url(url))  # without a role: nothing is granted
    event_id = str(new_id())
    with closing(psycopg2.connect(url)) as by_service, by_service, by_service.cursor() as cursor:
        cursor.execute(
            "INSERT INTO outbox (id, subject, payload, request_id, signature, created_at)"
            " VALUES (%s, 'a subject', %s, '', 'a signature', now())",
            (event_id, event_id.encode()),
        )
    with closing(psycopg2.connect(owner_url(url))) as by_owner, by_owner.cursor() as cursor:
        cursor.execute("SELECT event_id::text, signature FROM facts")
        assert cursor.fetchall() == [(event_id, "a signature")]
    _databases.drop(url)
