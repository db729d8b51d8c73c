"""Migrations let the version before go on: it runs on the new schema until its processes are replaced.

A migration only adds. What takes away, or asks more of rows than the version before gives, is split over two versions:
first nobody needs it any more, then it goes (docs/operations.md, Upgrades).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

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
        elif name == "op.add_column":
            column = ast.unparse(call.args[1])
            if "nullable=False" in column and "server_default" not in column:
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
        'op.create_check_constraint("ck", "invoices", "char_length(purpose) < 10")',
    ],
)
def test_one_that_does_is_noticed(step: str) -> None:
    assert list(breaks(f"def upgrade() -> None:\n    {step}\n"))
