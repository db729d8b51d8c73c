"""The catalog in one process: real PostgreSQL, a real gRPC port, a clock that is moved by hand."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from typing import Any

import pytest

from fiatgate.catalog.v1 import catalog_pb2_grpc
from services.catalog.config import CatalogSettings
from services.catalog.rpc import add_to
from services.catalog.wiring import wire
from tests.catalog.running import Catalog, RateServer
from tests.support.clock import START, ManualClock
from tests.support.serving import connected, serving

_days = itertools.count(1)


@contextmanager
def running(database_url: str, **settings: Any) -> Iterator[Catalog]:
    values: dict[str, Any] = {
        "database_url": database_url,
        "bind": "127.0.0.1:0",
        "rate_allow_private": True,
        "rate_source_timeout_seconds": 4,
    }
    clock = ManualClock()
    deps = wire(CatalogSettings(**(values | settings)), clock=clock)
    with serving(add_to, deps) as address, connected(address) as channel:
        yield Catalog(deps, catalog_pb2_grpc.CatalogServiceStub(channel), clock)
    deps.db.dispose()


def on_a_later_day(catalog: Catalog) -> Catalog:
    catalog.clock.set(START + timedelta(days=next(_days)))
    return catalog


@pytest.fixture
def make_catalog(database_url: Callable[[str], str]) -> Iterator[Callable[..., Catalog]]:
    """`make_catalog(rates_min_sources=2, …)`: a catalog with these settings."""
    with ExitStack() as stack:
        yield lambda **settings: on_a_later_day(
            stack.enter_context(running(database_url("catalog"), **settings))
        )


@pytest.fixture(scope="module")
def _catalog(database_url: Callable[[str], str]) -> Iterator[Catalog]:
    with running(database_url("catalog")) as catalog:
        yield catalog


@pytest.fixture
def catalog(_catalog: Catalog) -> Catalog:
    """The module's catalog, without rate sources."""
    return on_a_later_day(_catalog)


@pytest.fixture
def rate_server() -> Iterator[RateServer]:
    with RateServer() as server:
        yield server
