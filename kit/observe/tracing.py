"""Traces: the work of one request in all processes, as spans for an OpenTelemetry collector.

    with tracing.span("ConfirmDeal", kind="client") as span:
        ...
        span.set_attribute("rpc.response.status_code", "OK")

Off unless the setting `traces_endpoint` gives the collector's address. When off, each function is one comparison and
OpenTelemetry isn't imported: `start` imports it, through `kit.observe.otel`, only when traces are on.

A span holds only values that the code names (no addresses, statements, bodies, messages of exceptions), because the
operators of the collector can read it. A request at the gateway, an operator's command and an event without a request
begin a trace; probes and the calls of loops begin none (docs/decisions/0012).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self

if TYPE_CHECKING:
    from kit.base.config.processes import Settings
    from kit.observe.otel import Spans

HEADER: Final = "traceparent"
"""The name in gRPC metadata and NATS messages (W3C Trace Context); columns of that name hold it."""

REQUEST_ID: Final = "fiatgate.request_id"

Kind = Literal["server", "client", "producer", "consumer"]
Value = str | int

parts = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})").fullmatch
"""Matches a traceparent: the ids of trace and span, and the flags, whose last bit means "sampled"."""

_spans: Spans | None = None


class Span:
    """A piece of work in progress. This class belongs to no trace, and its attributes are dropped."""

    __slots__ = ()

    def set_attribute(self, name: str, value: Value) -> None:
        """Sets an attribute; the names are OpenTelemetry's where it has one."""

    def rename(self, name: str) -> None:
        """Changes the name, for work whose name isn't known at its start."""

    def fail(self, kind: str) -> None:
        """Marks the work as failed: `kind` is a class of errors, never their text. An exception does this by itself."""

    @property
    def traceparent(self) -> str:
        """The value that makes another span its child; empty outside of any trace."""
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


NOTHING: Final = Span()
NO_IDS: Final[Mapping[str, str]] = {}

current: ContextVar[Span] = ContextVar("span", default=NOTHING)


def start(service: str, settings: Settings) -> None:
    """Starts to make and send spans if the settings name a collector. Call it in the process that works, after any
    fork: the sender is a thread.
    """
    global _spans  # noqa: PLW0603  one per process, read at every place that makes a span
    if settings.traces_endpoint and _spans is None:
        from kit.observe.otel import Spans  # noqa: PLC0415  takes a fifth of a second, so only with traces on

        _spans = Spans(service, settings)


def stop() -> None:
    """Sends the remaining spans, for a few seconds at most; no span is made from now on."""
    global _spans
    spans, _spans = _spans, None
    if spans is not None:
        spans.close()


def is_on() -> bool:
    """Returns whether this process makes spans."""
    return _spans is not None


def span(name: str, kind: Kind, attributes: Mapping[str, Value] | None = None) -> Span:
    """Returns a part of the current span, itself current inside its `with`; `NOTHING` outside of any trace."""
    return NOTHING if _spans is None else _spans.part(name, kind, attributes)


def continued(
    name: str, kind: Kind, traceparent: str | None, attributes: Mapping[str, Value] | None = None
) -> Span:
    """Returns the span of work in a trace of another process of ours; a new trace when `traceparent` is empty."""
    return NOTHING if _spans is None else _spans.continued(name, kind, traceparent or "", attributes)


def begun(
    name: str, kind: Kind, linked_to: str | None = None, attributes: Mapping[str, Value] | None = None
) -> Span:
    """Returns the first span of a new trace; `linked_to` is the traceparent of an outside client: it becomes a link and
    decides nothing here.
    """
    return NOTHING if _spans is None else _spans.begun(name, kind, linked_to or "", attributes)


def traceparent() -> str:
    """Returns the current span's value for other processes; empty outside of any trace."""
    return current.get().traceparent


def outgoing() -> str:
    """Returns the value for a call. Outside of any trace the value means "not sampled", so that the called service
    begins none.
    """
    if _spans is None:
        return ""
    return current.get().traceparent or f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"


def ids() -> Mapping[str, str]:
    """Returns `trace_id` and `span_id` of the current span, for a log line; empty outside of any trace."""
    return NO_IDS if _spans is None else ids_of(current.get().traceparent)


def ids_of(traceparent: str) -> Mapping[str, str]:
    """Returns the same for a span that isn't the current one."""
    match = parts(traceparent)
    return NO_IDS if match is None else {"trace_id": match[1], "span_id": match[2]}
