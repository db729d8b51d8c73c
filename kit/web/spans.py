"""The span of a request, where each trace begins (kit.observe.tracing)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import falcon

from kit.base.config.processes import Settings
from kit.observe import tracing
from kit.observe.tracing import Span
from kit.web.exchange import Exchange

_HEADER: Final = tracing.HEADER.encode()
_METHODS: Final = frozenset(falcon.HTTP_METHODS)


def begun(scope: dict[str, Any], exchange: Exchange) -> Span:
    """Returns the span of a request, whose route is not known yet. A client's own trace is linked to and not
    continued: else its `traceparent` would decide what is sampled here.
    """
    method = scope["method"]
    is_known = method in _METHODS
    return tracing.begun(
        method if is_known else "HTTP",
        "server",
        linked_to=_traceparent(scope) if tracing.is_on() else None,
        attributes={
            "http.request.method": method if is_known else "_OTHER",
            tracing.REQUEST_ID: exchange.request_id,
        },
    )


def answered(span: Span, method: str, exchange: Exchange) -> None:
    """Adds the answer. Leaves out the address, which may hold secrets in its query, and the client."""
    span.set_attribute("http.response.status_code", exchange.status)
    if exchange.route:
        span.rename(f"{method} {exchange.route}")
        span.set_attribute("http.route", exchange.route)
    if exchange.code:
        span.set_attribute("fiatgate.code", exchange.code)
    for name, value in exchange.span_attributes().items():
        span.set_attribute(name, value)
    if exchange.status >= 500:
        span.fail(exchange.code or str(exchange.status))


def _traceparent(scope: dict[str, Any]) -> str:
    found: list[bytes] = [value for name, value in scope["headers"] if name == _HEADER]
    return found[0].decode("latin-1") if len(found) == 1 else ""


@asynccontextmanager
async def traced(settings: Settings) -> AsyncIterator[None]:
    """Makes and sends the spans of this worker process while it lives."""
    tracing.start(settings.service, settings)
    try:
        yield
    finally:
        tracing.stop()
