"""docs/security.md names a test for each promise, and each of those tests exists."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[1]
DOCUMENT: Final = (ROOT / "docs" / "security.md").read_text()
NAMED: Final = re.findall(r"`((?:tests|benchmarks)/[\w/]+\.py)(?:::(\w+))?`", DOCUMENT)


def rows() -> list[list[str]]:
    """The cells of each row of a table of promises: promise, how, shown by."""
    tables = re.findall(r"\| promise \|.*?\n\|[-|]+\n((?:\|.*\n)+)", DOCUMENT)
    return [
        [cell.strip() for cell in row.strip("|").split(" | ")]
        for table in tables
        for row in table.splitlines()
    ]


@pytest.mark.parametrize(("file", "name"), sorted(set(NAMED)))
def test_every_test_named_there_exists(file: str, name: str) -> None:
    path = ROOT / file
    assert path.is_file(), f"docs/security.md names {file}, which does not exist"
    if name:
        functions = {
            node.name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert name in functions, f"docs/security.md names {file}::{name}, which does not exist"


def test_every_promise_names_its_test() -> None:
    assert len(rows()) > 30, "the search finds the tables no more"
    without = [row[0] for row in rows() if not re.search(r"`(tests|benchmarks)/", row[-1])]
    assert not without, "promises without a test"
