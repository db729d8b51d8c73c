"""What users see of a day is what was recorded: `make referee` shows the difference, ARGS=--update accepts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.referee.__main__ import RECORDED, differences, write

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]


def test_a_day_is_as_it_was_recorded(tmp_path: Path) -> None:
    write(tmp_path)
    assert differences(RECORDED, tmp_path) == []
