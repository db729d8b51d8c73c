"""`make generators` and docs/integrate.md name the same generators."""

import re
from pathlib import Path

from tests.generators.tools import GENERATORS

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "integrate.md"


def test_the_guide_has_each_generator_with_its_version() -> None:
    table = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|$", GUIDE.read_text(), re.M)
    assert table == [(name, each.tool) for name, each in GENERATORS.items()]
