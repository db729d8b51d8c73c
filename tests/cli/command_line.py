"""Runs `fiatgate` inside the tests' process: what it prints, and its exit code."""

import contextlib
import io
import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
import structlog

from cli.__main__ import main
from tests.support.stack import Stack

SECOND_PERSON: Final = ("--as", "second@example.com")


@dataclass(frozen=True)
class Ended:
    exit_code: int
    out: str
    err: str


def run(*arguments: str) -> Ended:
    """`fiatgate ARGUMENTS`, as the console script starts it."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patched, _logging_as_before():
        patched.setattr(sys, "argv", ["fiatgate", *arguments])
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main()
                exit_code = 0
            except SystemExit as end:
                exit_code = end.code if isinstance(end.code, int) else int(end.code is not None)
    return Ended(exit_code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _logging_as_before() -> Iterator[None]:
    before = structlog.get_config()
    # As in a process of its own, which writes no log lines.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.configure(**before)


@dataclass(frozen=True)
class Fiatgate:
    """`fiatgate` against a stack whose address is in the environment."""

    stack: Stack

    def __call__(self, *arguments: str) -> Any:
        """What the command prints with --json, parsed; it must be done."""
        ended = run(*arguments, "--json")
        assert ended.exit_code == 0, f"{arguments}: {ended}"
        assert ended.err == ""
        return json.loads(ended.out)

    def by_two(self, *arguments: str) -> None:
        """A command that one person requests and another approves."""
        ended = run(*arguments, "--json")
        error = json.loads(ended.err)["error"]
        assert error["code"] == "APPROVAL_REQUIRED", ended
        self("approvals", "approve", error["details"]["approval_id"], "--yes", *SECOND_PERSON)

    def by_two_if_needed(self, *arguments: str) -> Any:
        """A command that a second person approves if there is an administrator already."""
        ended = run(*arguments, "--json")
        if ended.exit_code == 0:
            return json.loads(ended.out)
        error = json.loads(ended.err)["error"]
        assert error["code"] == "APPROVAL_REQUIRED", ended
        return self("approvals", "approve", error["details"]["approval_id"], "--yes", *SECOND_PERSON)

    def refused(self, *arguments: str) -> str:
        """The code of the refusal, the same for people and for scripts."""
        ended = run(*arguments)
        assert ended.exit_code == 1, f"{arguments}: {ended}"
        assert ended.out == ""
        code = ended.err.split()[0]
        scripted = run(*arguments, "--json")
        assert (scripted.exit_code, scripted.out) == (1, "")
        error = json.loads(scripted.err)["error"]
        assert set(error) == {"code", "message", "details"}
        assert error["code"] == code
        return code

    def shown(self, *arguments: str) -> str:
        ended = run(*arguments)
        assert ended.exit_code == 0, f"{arguments}: {ended}"
        return ended.out
