"""Compares a scripted day with its recording. `make referee` prints the differences, ARGS=--update accepts them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]


def test_a_day_is_as_it_was_recorded() -> None:
    """In a process of its own: that of the tests has authors and keys of its own."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("FIATGATE_")}
    command = [sys.executable, "-m", "tests.referee", "compare"]
    compared = subprocess.run(command, env=clean, capture_output=True, text=True, timeout=500, check=False)
    assert compared.returncode == 0, compared.stdout + compared.stderr
