"""Fixtures of the end-to-end tests: a shop and an operator on the session's stack, and what takes its time."""

from collections.abc import Iterator

import pytest

from tests.e2e.long_waits import LongWaits
from tests.e2e.market import Operator, Shop
from tests.support.stack import Stack


@pytest.fixture(scope="session")
def operator(stack: Stack) -> Iterator[Operator]:
    with Operator(stack) as at_the_desk:
        yield at_the_desk


@pytest.fixture(scope="session")
def shop(stack: Stack) -> Shop:
    return Shop.opened(stack)


@pytest.fixture(scope="session", autouse=True)
def long_waits(stack: Stack, shop: Shop, operator: Operator) -> Iterator[LongWaits]:
    """What happens by the clock, begun before the first test so that nobody has to sit through it."""
    with LongWaits.begun(stack, shop, operator) as begun:
        yield begun
