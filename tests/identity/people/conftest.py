"""An identity service on a real database, called directly and over a real socket."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count

import grpc
import pytest
from cryptography.fernet import Fernet
from sqlalchemy import text

from kit.base import actors
from kit.base.actors import Actor
from kit.rpc.slots import Slots
from services.identity import rpc
from services.identity.config import IdentitySettings
from services.identity.credentials.actor_keys import KeptKey
from services.identity.credentials.passwords import Passwords
from services.identity.wiring import Deps, wire
from tests.support.clock import ManualClock
from tests.support.serving import connected, serving
from tests.support.signing import SEAL_KEY

DESK_URL = "http://localhost:8081"
DASHBOARD_URL = "http://localhost:8082"
OPERATOR = Actor(kind="cli", name="eve@laptop", surface="cli")

_numbers = count(1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="module")
def make_settings(database_url: Callable[[str], str]) -> Callable[..., IdentitySettings]:
    """Settings of the module's database; the master key is the module's unless given."""
    master_key = Fernet.generate_key().decode()

    def make(*master_keys: str, smtp_url: str = "") -> IdentitySettings:
        return IdentitySettings(
            seal_keys=(SEAL_KEY,),
            database_url=database_url("identity"),
            bind="127.0.0.1:0",
            master_keys=master_keys or (master_key,),
            desk_url=DESK_URL,
            dashboard_url=DASHBOARD_URL,
            smtp_url=smtp_url,
            smtp_from="fiatgate@example.com" if smtp_url else "",
        )

    return make


@pytest.fixture(scope="module")
def _wired(make_settings: Callable[..., IdentitySettings]) -> Iterator[Deps]:
    deps = wire(make_settings())
    yield deps
    deps.db.dispose()


@pytest.fixture
def cost() -> dict[str, int]:
    """The cost of a password's hash: little, for tests make hundreds. With `{}` it is the one that `wire` chose."""
    return {"passes": 1, "memory_kib": 1024}


@pytest.fixture
def deps(_wired: Deps, clock: ManualClock, cost: dict[str, int]) -> Iterator[Deps]:
    """The author of calls without a name of their own is the command line. No guesses are counted yet: the clock of the
    test before went its own way.
    """
    with _wired.db.transaction() as tx:
        tx.execute(text("DELETE FROM guesses"))
    with actors.acting(OPERATOR):
        passwords = Passwords(**cost) if cost else _wired.passwords
        yield replace(_wired, clock=clock, kept_key=KeptKey(), passwords=passwords)


@pytest.fixture
def new_email() -> Callable[[], str]:
    return lambda: f"person{next(_numbers)}@example.com"


@contextmanager
def served(deps: Deps, slots: Sequence[Slots] = rpc.SLOTS) -> Iterator[grpc.Channel]:
    """The service behind a real socket, as the console sees it."""
    with serving(rpc.add_to, deps, service="identity", slots=slots) as address, connected(address) as channel:
        yield channel
