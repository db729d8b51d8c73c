"""kit has no word of the business in its names (docs/ARCHITECTURE.md)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.test_architecture import ROOT, sources

BUSINESS: Final = re.compile(
    "invoice|merchant|(?<![a-z])deal|requisite|withdraw|webhook|customer|payment|catalog|appeal|usdt|fiat"
)
MONEY: Final = ROOT / "kit" / "base" / "money.py"
"""The number formats of fiat and USDT: all services and the gateway write amounts alike."""
AUTHORS: Final = frozenset(
    ROOT / each
    for each in (
        "kit/base/actors.py",
        "kit/rpc/actors.py",
        "kit/rpc/actor_tokens.py",
        "kit/rpc/permissions.py",
        "kit/rpc/audit.py",
        "kit/rpc/find.py",
        "kit/rpc/approvals.py",
    )
)
ACTS: Final = ROOT / "kit" / "audit"
"""Authors and their acts name the merchant whose data they concern, alike in all services."""


def names_in(path: Path) -> Iterator[str]:
    """Yields the names that a file defines or uses: of classes, functions, arguments, variables and attributes."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute):
            yield node.attr


def test_no_name_in_kit_is_a_word_of_the_business() -> None:
    """A tool that knows invoices serves one service only, and belongs there."""
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources("kit")
        if path not in (MONEY, *AUTHORS) and path.parent != ACTS
        for name in names_in(path)
        if BUSINESS.search(name.lower())
    }
    assert not found
