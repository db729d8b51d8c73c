"""Fixtures of the gateway's tests: an operator's desk, a shop, and gateways with other settings than the stack's."""

from collections.abc import Iterator

import pytest

from tests.gateway.desk import Desk, Shop
from tests.gateway.process import SERVICES
from tests.gateway.strangers import Watched, watched_gateway
from tests.support.stack import Stack

LIMIT = 20
"""Requests in a minute that `strict` takes of a key, and names that do not exist that it takes of a network."""
PAGES = 10
"""Requests in a minute that `strict` takes for the pages of a payment, and of a network for logos."""


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Tests that are coroutines run in an event loop of asyncio (the plugin that comes with anyio)."""
    return "asyncio"


@pytest.fixture(scope="session")
def desk(stack: Stack) -> Iterator[Desk]:
    with Desk(stack) as opened:
        yield opened


@pytest.fixture(scope="session")
def currency(desk: Desk) -> str:
    return desk.currency()


@pytest.fixture(scope="session")
def method(desk: Desk, currency: str) -> str:
    """Its payment method, 1 % commission, with an account."""
    code = desk.method(currency)
    desk.requisite(code)
    return code


@pytest.fixture(scope="session")
def shop(desk: Desk, currency: str, method: str) -> Shop:
    """A merchant that sells in it, by this method only; 4 % category commission, half of all commission paid by the
    client.
    """
    return desk.open_shop(currency, allowed_methods=[method])


@pytest.fixture(scope="session")
def strict(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A gateway whose limits are small; a test takes networks, keys and payments of its own."""
    settings = {
        "FIATGATE_RATE_LIMIT_PER_MINUTE": str(LIMIT),
        "FIATGATE_STRANGERS_PER_MINUTE": str(LIMIT),
        "FIATGATE_PAGE_REQUESTS_PER_MINUTE": str(PAGES),
        "FIATGATE_TRUSTED_PROXIES": "127.0.0.0/8",
    }
    with watched_gateway(stack.addresses, tmp_path_factory.mktemp("strict"), **settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def lenient(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A gateway without limits of requests, behind a proxy that serves it under /fiat and takes the prefix off."""
    settings = {
        "FIATGATE_RATE_LIMIT_PER_MINUTE": "0",
        "FIATGATE_STRANGERS_PER_MINUTE": "0",
        "FIATGATE_PAGE_REQUESTS_PER_MINUTE": "0",
        "FIATGATE_NETWORK_PAGE_REQUESTS_PER_MINUTE": "0",
        "FIATGATE_TRUSTED_PROXIES": "127.0.0.0/8",
        "FIATGATE_PUBLIC_URL": "https://pay.example/fiat/",
    }
    with watched_gateway(stack.addresses, tmp_path_factory.mktemp("lenient"), **settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def crippled(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """A gateway whose withdrawals service is away, and whose invoices service is another one."""
    addresses = {name: stack.addresses[name] for name in SERVICES if name != "withdrawals"}
    addresses["invoices"] = addresses["catalog"]
    with watched_gateway(addresses, tmp_path_factory.mktemp("crippled")) as opened:
        yield opened
