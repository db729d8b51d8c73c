"""An identity service on a real database, called directly and over a real socket."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count

import pytest
from cryptography.fernet import Fernet

from fiatgate.merchants.v1.merchants_pb2_grpc import MerchantsServiceStub
from services.identity import rpc
from services.identity.config import IdentitySettings
from services.identity.operations import api_keys, merchants
from services.identity.operations.api_keys import NewApiKey
from services.identity.operations.merchants import MerchantOptions
from services.identity.wiring import Deps, wire
from tests.support import serving as support
from tests.support.clock import ManualClock
from tests.support.signing import SEAL_KEY

_numbers = count(1)


@dataclass(frozen=True)
class Shop:
    """An active merchant with one key, the only one of its owner."""

    merchant_id: str
    email: str
    key: NewApiKey


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(scope="module")
def make_settings(database_url: Callable[[str], str]) -> Callable[..., IdentitySettings]:
    """Settings of the module's database; the master key is the module's unless given, keys have no lease."""
    master_key = Fernet.generate_key().decode()

    def make(
        *master_keys: str, webhook_allow_private: bool = False, key_lease_milliseconds: int = 0
    ) -> IdentitySettings:
        return IdentitySettings(
            seal_keys=(SEAL_KEY,),
            database_url=database_url("identity"),
            bind="127.0.0.1:0",
            desk_url="http://localhost:8081",
            dashboard_url="http://localhost:8082",
            master_keys=master_keys or (master_key,),
            webhook_allow_private=webhook_allow_private,
            key_lease_milliseconds=key_lease_milliseconds,
        )

    return make


@pytest.fixture(scope="module")
def _wired(make_settings: Callable[..., IdentitySettings]) -> Iterator[Deps]:
    deps = wire(make_settings())
    yield deps
    deps.db.dispose()


@pytest.fixture
def deps(_wired: Deps, clock: ManualClock) -> Deps:
    return replace(_wired, clock=clock)


@pytest.fixture
def new_email() -> str:
    return f"owner{next(_numbers)}@example.com"


@pytest.fixture
def shop(deps: Deps) -> Shop:
    email = f"shop{next(_numbers)}@example.com"
    merchant = merchants.create_merchant(
        deps, owner_email=email, active=True, options=MerchantOptions(name="A shop")
    )
    merchant_id = str(merchant.merchant_id)
    return Shop(merchant_id, email, api_keys.create_api_key(deps, merchant_id=merchant_id))


@contextmanager
def serving(deps: Deps) -> Iterator[MerchantsServiceStub]:
    """The service behind a real socket, as other services see it."""
    with (
        support.serving(rpc.add_to, deps, service="identity", slots=rpc.SLOTS) as address,
        support.connected(address) as channel,
    ):
        yield MerchantsServiceStub(channel)


@pytest.fixture(scope="module")
def stub(_wired: Deps) -> Iterator[MerchantsServiceStub]:
    with serving(_wired) as served:
        yield served
