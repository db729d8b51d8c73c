"""The span of a call, at both ends: names and attributes follow OpenTelemetry's conventions for RPC."""

from __future__ import annotations

from typing import Final

import grpc

from kit.base import request_id
from kit.observe import tracing
from kit.observe.tracing import Span

# These codes need an operator. The others are answers: a refusal is not a failure.
_FAILURES: Final = frozenset(
    {
        grpc.StatusCode.UNKNOWN,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.UNIMPLEMENTED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    }
)


class CallSpans:
    """The spans of one method. `method` is gRPC's name, with a slash at the start."""

    def __init__(self, method: str) -> None:
        self._name = method.removeprefix("/")
        self._attributes = {"rpc.system.name": "grpc", "rpc.method": self._name}

    def of_client(self) -> Span:
        """Returns a span as a part of the current one; calls that loops make by themselves are in no trace."""
        return tracing.span(self._name, "client", self._attributes)

    def of_server(self, traceparent: str | None) -> Span:
        return tracing.continued(
            self._name,
            "server",
            traceparent,
            {**self._attributes, tracing.REQUEST_ID: request_id.current()},
        )


def answered(span: Span, code: grpc.StatusCode, reason: str = "") -> None:
    """Records the outcome of the call; `reason` is the reason of a refusal."""
    span.set_attribute("rpc.response.status_code", code.name)
    if reason:
        span.set_attribute("fiatgate.reason", reason)
    if code in _FAILURES:
        span.fail(reason or code.name)
