"""The catalog in one process: real PostgreSQL, a real gRPC port, a clock that is moved by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest

from fiatgate.catalog.v1 import catalog_pb2_grpc
from kit.rpc.client import channel
from kit.rpc.server import RpcServer
from services.catalog.config import CatalogSettings
from services.catalog.rpc import add_to
from services.catalog.wiring import wire
from tests.catalog.running import Catalog, RateServer
from tests.support.clock import START, ManualClock

_days = itertools.count(1)


@pytest.fixture
def make_catalog(database_url: Callable[[str], str]) -> Iterator[Callable[..., Catalog]]:
    """`make_catalog(rates_min_sources=2, …)`: a catalog with these settings, on a later day than any before it."""
    with ExitStack() as stack:

        def make(**settings: Any) -> Catalog:
            values: dict[str, Any] = {
                "database_url": database_url("catalog"),
                "bind": "127.0.0.1:0",
                "rate_allow_private": True,
                "rate_source_timeout_seconds": 4,
            }
            clock = ManualClock()
            clock.set(START + timedelta(days=next(_days)))
            deps = wire(CatalogSettings(**(values | settings)), clock=clock)
            stack.callback(deps.db.dispose)
            server = RpcServer()
            add_to(server, deps)
            port = server.add_insecure_port("127.0.0.1:0")
            server.start()
            stack.callback(lambda: server.stop(None).wait(5))
            rpc = stack.enter_context(channel(f"127.0.0.1:{port}", name="catalog"))
            return Catalog(deps, catalog_pb2_grpc.CatalogServiceStub(rpc), clock)

        yield make


@pytest.fixture
def catalog(make_catalog: Callable[..., Catalog]) -> Catalog:
    """A catalog without rate sources."""
    return make_catalog()


@pytest.fixture
def rate_server() -> Iterator[RateServer]:
    with RateServer() as server:
        yield server
