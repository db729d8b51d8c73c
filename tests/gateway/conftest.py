"""Fixtures of the gateway's tests: an operator's desk, and a shop that sells in a currency of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.gateway.desk import Desk, Shop
from tests.support.stack import Stack


@pytest.fixture(scope="module")
def desk(stack: Stack) -> Iterator[Desk]:
    """The operator."""
    with Desk(stack) as opened:
        yield opened


@pytest.fixture(scope="module")
def currency(desk: Desk) -> str:
    """A currency of the module's own, 90.00 to the USDT."""
    return desk.currency()


@pytest.fixture(scope="module")
def method(desk: Desk, currency: str) -> str:
    """Its payment method, 1 % commission, with an account."""
    code = desk.method(currency)
    desk.requisite(code)
    return code


@pytest.fixture(scope="module")
def shop(desk: Desk, currency: str, method: str) -> Shop:
    """A merchant that sells in it; 4 % category commission, half of all commission paid by the client."""
    return desk.open_shop(currency)
