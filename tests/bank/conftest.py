"""The bank service in one process: real PostgreSQL, a clock that is moved by hand."""

from collections.abc import Callable, Iterator

import pytest

from services.bank.config import BankSettings
from services.bank.wiring import Deps, wire
from tests.support.clock import ManualClock
from tests.support.signing import SEAL_KEY


@pytest.fixture(scope="module")
def bank(database_url: Callable[[str], str]) -> Iterator[Deps]:
    """Without invoices: nothing is proposed."""
    settings = BankSettings(
        seal_keys=(SEAL_KEY,), database_url=database_url("bank"), bind="127.0.0.1:0", pool_size=24
    )
    deps = wire(settings, clock=ManualClock())
    yield deps
    deps.db.dispose()
