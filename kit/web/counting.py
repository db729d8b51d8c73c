"""Counts the requests of one worker process, for Prometheus (kit.observe.metrics)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Final, NamedTuple

import falcon
from prometheus_client import Counter, Histogram

from kit.observe import metrics
from kit.rpc import tls
from kit.web.config import WebSettings
from kit.web.exchange import Exchange

REQUESTS: Final = metrics.counter(
    "http_requests",
    "HTTP requests answered, by route, method, status and error code",
    ["route", "method", "status", "code"],
)
SECONDS: Final = metrics.histogram(
    "http_request_seconds", "Duration of HTTP requests, from their first byte", ["route", "method"]
)
NO_ROUTE: Final = "none"
"""The route of an address without a resource. Its path and method are no labels, because clients could make any number
of series with them.
"""
OTHER_METHOD: Final = "other"
"""A method that HTTP does not have; it is no label for the same reason."""

_METHODS: Final = frozenset(falcon.HTTP_METHODS)


class _Series(NamedTuple):
    answered: Counter
    seconds: Histogram


@cache  # as bounded as the series themselves; saves both look-ups under a lock
def _series(route: str, method: str, status: int, code: str) -> _Series:
    if not route:
        route, method = NO_ROUTE, ""
    return _Series(REQUESTS.labels(route, method, status, code), SECONDS.labels(route, method))


def count(method: str, exchange: Exchange, *, seconds: float) -> None:
    """Counts one answered request."""
    if method not in _METHODS:
        method = OTHER_METHOD
    series = _series(exchange.route, method if exchange.route else "", exchange.status, exchange.code)
    series.answered.inc()
    series.seconds.observe(seconds)


@asynccontextmanager
async def scraped(settings: WebSettings) -> AsyncIterator[None]:
    """Exports the metrics of this worker process while it lives; each worker has a port of its own."""
    tls.show_expiry(settings.identity)
    exporter = metrics.Exporter(
        settings.metrics_bind, processes=settings.workers, own=(metrics.Build(settings.service),)
    )
    exporter.start()
    try:
        yield
    finally:
        exporter.close()
