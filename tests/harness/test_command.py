"""The verdict of a harness can be a bad one."""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

import pytest
import structlog

from tests.harness.command import Tell, judge


@dataclass(frozen=True)
class Round:
    number: int
    violations: Sequence[str] = ()


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    logging, on_signal = structlog.get_config(), signal.getsignal(signal.SIGTERM)
    yield
    structlog.configure(**logging)
    signal.signal(signal.SIGTERM, on_signal)


@pytest.mark.parametrize(
    ("came", "exit_code"),
    [
        ([Round(1), Round(2)], 0),
        ([Round(1), Round(2, ["a credit is missing"])], 1),
        ([Round(1)], 1),
    ],
)
def test_only_all_rounds_without_a_broken_promise_are_well(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    came: list[Round],
    exit_code: int,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    used: list[Path] = []

    def rounds(folder: Path, tell: Tell) -> Iterator[Round]:
        used.append(folder)
        yield from came

    assert judge("sample", None, rounds, {"number": attrgetter("number")}, count=2) == exit_code
    assert used[0].exists() == bool(exit_code), "kept for a look at what was seen"
    printed = capsys.readouterr().out
    assert all(violation in printed for each in came for violation in each.violations)
    assert ("Promises were broken" in printed) == bool(exit_code)
