"""The command, pointed at the session's stack."""

import pytest

from tests.cli.command_line import Fiatgate
from tests.support.stack import Stack


@pytest.fixture
def fiatgate(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> Fiatgate:
    monkeypatch.setenv("FIATGATE_HOME", str(stack.home.folder))
    return Fiatgate(stack)
