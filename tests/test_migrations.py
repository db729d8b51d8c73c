"""Schemas and versions come in any order (docs/operations/upgrade.md): the version before runs on the new schema, and
this version on the schema of the one before. tests/kit/test_schema.py and test_migrate.py try it on a made-up second
migration, tests/rolling upgrades a running system.

A migration only adds. What takes away, or asks more of rows than the version before gives, is split over two versions:
first nobody needs it any more, then it goes. What a version adds its own code does without.
"""

import ast
import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import psycopg2
import psycopg2.errors
import pytest

from kit.db import migrate, schema
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


def test_migrations_take_nothing_away_from_the_version_before() -> None:
    assert {path: found for path in LATER if (found := list(breaks(path.read_text())))} == {}


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


# -- the models

SERVICES: Final = sorted(path.parent.name for path in ROOT.glob("services/*/migrations"))


def models_of(service: str) -> Any:
    return importlib.import_module(f"services.{service}.models").Base.metadata


@pytest.mark.parametrize("service", SERVICES)
def test_the_models_say_what_the_oldest_schema_has_on_which_the_service_runs(
    _databases: Databases, service: str
) -> None:
    """A table that only SQL names needs no model."""
    url, metadata = _databases.fresh(service, schema.needs(service)), models_of(service)

    differences = [
        each
        for each in migrate.drift(url, metadata)
        if not (each.kind.startswith("remove_") and names_no_model(each, metadata))
    ]

    _databases.drop(url)
    assert differences == [], "models name only what NEEDS has, until the next version (docs/decisions/0025)"


def names_no_model(difference: migrate.Difference, metadata: Any) -> bool:
    table = re.search(r"Table\('(\w+)'|table=<(\w+)>", difference.text)
    return table is not None and (table[1] or table[2]) not in metadata.tables


# -- values that would break a reader

INFINITE: Final = ("NaN", "Infinity", "-Infinity")
UNREADABLE: Final = ("infinity", "-infinity", "200000-01-01", "4000-01-01 BC")
_COLUMNS: Final = """
SELECT relname, attname, typname FROM pg_attribute
JOIN pg_class ON pg_class.oid = attrelid JOIN pg_type ON pg_type.oid = atttypid
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND attnum > 0
  AND NOT attisdropped AND typname = ANY (%s) ORDER BY 1, 2
"""


class Copies:
    """Temporary tables with the checks of those of a service, and without NOT NULL."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg2.connect(owner_url(url))
        self._connection.autocommit = True

    def columns(self, *types: str) -> list[tuple[str, str]]:
        with self._connection.cursor() as cursor:
            cursor.execute(_COLUMNS, (list(types),))
            return [(table, column) for table, column, _ in cursor.fetchall()]

    def takes(self, table: str, column: str, value: str) -> bool:
        """`value` is SQL."""
        with self._connection.cursor() as cursor:
            cursor.execute(f"CREATE TEMP TABLE copy (LIKE {table} INCLUDING CONSTRAINTS)")
            try:
                cursor.execute(
                    "SELECT attname FROM pg_attribute WHERE attrelid = 'copy'::regclass AND attnum > 0 AND attnotnull"
                )
                for (each,) in cursor.fetchall():
                    cursor.execute(f"ALTER TABLE copy ALTER {each} DROP NOT NULL")
                cursor.execute(f"INSERT INTO copy ({column}) VALUES ({value})")
            except (psycopg2.errors.CheckViolation, psycopg2.errors.NumericValueOutOfRange):
                return False
            finally:
                cursor.execute("DROP TABLE copy")
        return True

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(params=SERVICES)
def copies(database_url: Callable[[str], str], request: pytest.FixtureRequest) -> Iterator[Copies]:
    made = Copies(database_url(request.param))
    yield made
    made.close()


def test_no_number_is_nan_or_infinite(copies: Copies) -> None:
    taken = [
        (table, column, value)
        for table, column in copies.columns("numeric", "float4", "float8")
        for value in INFINITE
        if copies.takes(table, column, f"'{value}'")
    ]
    assert taken == []


def test_no_time_is_one_that_python_can_not_read(copies: Copies) -> None:
    times = [(*each, value) for each in copies.columns("timestamptz", "date") for value in UNREADABLE]
    assert times
    assert [each for each in times if copies.takes(each[0], each[1], f"'{each[2]}'")] == []


def test_each_json_has_its_type_and_a_bound(copies: Copies) -> None:
    long = "repeat('x', 2000000)"
    wrong = ("'1'", f"jsonb_build_object('a', {long})", f"jsonb_build_array({long})")
    columns = copies.columns("json", "jsonb")
    assert ("acts", "changes") in columns
    assert [(*each, value) for each in columns for value in wrong if copies.takes(*each, value)] == []


@pytest.mark.parametrize(
    ("service", "table", "column", "right", "wrong"),
    [
        (
            "catalog",
            "acts",
            "changes",
            ("[]", '[["a", "", "b"], ["c", "d", ""]]'),
            (
                "[1]",
                '[["a", "b"]]',
                '[["a", "b", 1]]',
                '[["a", "b", ["c"]]]',
                '[["a", "b", null]]',
                '{"a": 1}',
            ),
        ),
        (
            "catalog",
            "rates",
            "document",
            (
                '{"quotes": []}',
                '{"quotes": [{"source": "a", "rate": "1.50", "error": ""}, {"source": "b", "rate": 2}]}',
                '{"quotes": [{"source": "a", "rate": null, "error": "away"}]}',
            ),
            (
                "{}",
                '{"quotes": {}}',
                '{"quotes": [1]}',
                '{"quotes": [{"rate": "1"}]}',
                '{"quotes": [{"source": 1, "rate": "1"}]}',
                '{"quotes": [{"source": "a"}]}',
                '{"quotes": [{"source": "a", "rate": "NaN"}]}',
                '{"quotes": [{"source": "a", "rate": "1e9"}]}',
                '{"quotes": [{"source": "a", "rate": [1]}]}',
            ),
        ),
        (
            "invoices",
            "deals",
            "rate_basis",
            (
                '{"origin": "operator", "source_rate": "1", "markup": "0", "taken_at": "t", "sources": []}',
                '{"origin": "o", "source_rate": "1", "markup": "0", "taken_at": "t",'
                ' "sources": [{"source": "a", "rate": null, "error": "e"}]}',
            ),
            (
                "{}",
                '{"origin": "o", "source_rate": 1, "markup": "0", "taken_at": "t", "sources": []}',
                '{"origin": "o", "source_rate": "1", "markup": "0", "taken_at": "t", "sources": [1]}',
                '{"origin": "o", "source_rate": "1", "markup": "0", "taken_at": "t",'
                ' "sources": [{"source": "a", "rate": 1, "error": ""}]}',
            ),
        ),
        ("webhooks", "attempts", "response_headers", ("{}", '{"a": "b"}'), ('{"a": 1}', '{"a": ["b"]}')),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_json_that_no_reader_could_read_is_refused(
    database_url: Callable[[str], str],
    service: str,
    table: str,
    column: str,
    right: Sequence[str],
    wrong: Sequence[str],
) -> None:
    with closing(Copies(database_url(service))) as copies:
        assert [each for each in right if not copies.takes(table, column, f"'{each}'")] == []
        assert [each for each in wrong if copies.takes(table, column, f"'{each}'")] == []


def test_no_text_and_no_bytes_are_without_a_bound(copies: Copies) -> None:
    long = {"text": "repeat('x', 65537)", "bytea": "convert_to(repeat('x', 8388609), 'UTF8')"}
    for kind, value in long.items():
        assert [each for each in copies.columns(kind) if copies.takes(*each, value)] == []


def test_no_list_has_lists_or_nothing_in_it(copies: Copies) -> None:
    wrong = ("ARRAY[ARRAY['a'], ARRAY['b']]", "ARRAY['a', NULL]", "ARRAY['']", "ARRAY['a, b']")
    assert [
        (*each, value) for each in copies.columns("_text") for value in wrong if copies.takes(*each, value)
    ] == []
