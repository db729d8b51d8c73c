"""Traces: which work one request caused, over all processes, as spans for an OpenTelemetry collector.

    with tracing.span("ConfirmDeal", kind="client") as span:
        ...
        span.tell("rpc.response.status_code", "OK")

Off unless the setting `traces_endpoint` says where the collector is. Then each of these functions is one comparison,
and OpenTelemetry isn't imported: `kit.tracing.otel`, which does it, is only when `start` is called with it on.

A span is told what the code names and nothing else (no addresses, statements, bodies, messages of exceptions): what is
in a trace may be read by whoever runs the collector. docs/decisions/0019 says who begins traces.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self

if TYPE_CHECKING:
    from kit.config import Settings
    from kit.tracing.otel import Spans

HEADER: Final = "traceparent"
"""Of gRPC metadata and NATS messages (W3C Trace Context); columns of that name keep it."""

REQUEST_ID: Final = "fiatgate.request_id"

Kind = Literal["server", "client", "producer", "consumer"]
Value = str | int

parts = re.compile(r"00-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})").fullmatch
"""Of a traceparent: the ids of trace and span, and the flags; the last bit of those means "sampled"."""

_spans: Spans | None = None


class Span:
    """A piece of work while it is being done; this one is of no trace, and what it is told is lost."""

    __slots__ = ()

    def tell(self, name: str, value: Value) -> None:
        """Note an attribute; the names are OpenTelemetry's where it has one."""

    def rename(self, name: str) -> None:
        """For a name that isn't known before the work is under way."""

    def fail(self, kind: str) -> None:
        """It went wrong: `kind` is a class of errors, never their text. An exception that passes says so itself."""

    @property
    def traceparent(self) -> str:
        """What makes another span its child; empty when it is of no trace."""
        return ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Unsampled(Span):
    """Of a trace that nobody keeps: all it does is to say so wherever it leads to."""

    __slots__ = ("_token", "_traceparent")

    _token: Token[Span]

    def __init__(self, traceparent: str) -> None:
        self._traceparent = traceparent

    @property
    def traceparent(self) -> str:
        return self._traceparent

    def __enter__(self) -> Self:
        self._token = current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        current.reset(self._token)


NOTHING: Final = Span()
NO_IDS: Final[Mapping[str, str]] = {}

current: ContextVar[Span] = ContextVar("span", default=NOTHING)


def start(service: str, settings: Settings) -> None:
    """Begin to make and send spans if the settings say so. In the process that works, after any fork: the sender is
    a thread.
    """
    global _spans  # noqa: PLW0603  one per process, asked for at every place that makes a span
    if settings.traces_endpoint and _spans is None:
        from kit.tracing.otel import Spans  # noqa: PLC0415  a fifth of a second, and nobody's who has traces off

        _spans = Spans(service, settings)


def stop() -> None:
    """Send what is left, for a few seconds at most; no span is made from now on."""
    global _spans
    spans, _spans = _spans, None
    if spans is not None:
        spans.close()


def is_on() -> bool:
    """Whether this process makes spans."""
    return _spans is not None


def span(name: str, kind: Kind, attributes: Mapping[str, Value] | None = None) -> Span:
    """A part of the current span's work, current itself inside its `with`; none outside of any trace."""
    return NOTHING if _spans is None else _spans.part(name, kind, attributes)


def continued(
    name: str, kind: Kind, traceparent: str | None, attributes: Mapping[str, Value] | None = None
) -> Span:
    """The work of a trace that came from another process of ours; a new trace when `traceparent` is none."""
    return NOTHING if _spans is None else _spans.continued(name, kind, traceparent or "", attributes)


def begun(
    name: str, kind: Kind, linked_to: str | None = None, attributes: Mapping[str, Value] | None = None
) -> Span:
    """The first work of a new trace; `linked_to` is the traceparent of a stranger, which decides nothing here."""
    return NOTHING if _spans is None else _spans.begun(name, kind, linked_to or "", attributes)


def traceparent() -> str:
    """Of the current span, to take along; empty outside of any trace."""
    return current.get().traceparent


def outgoing() -> str:
    """As `traceparent`, for a call: one that belongs to no trace says so, that the called service begins none."""
    if _spans is None:
        return ""
    return current.get().traceparent or f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00"


def ids() -> Mapping[str, str]:
    """`trace_id` and `span_id` of the current span, for a log line; nothing outside of any trace."""
    return NO_IDS if _spans is None else ids_of(current.get().traceparent)


def ids_of(traceparent: str) -> Mapping[str, str]:
    """The same of a span that isn't the current one."""
    match = parts(traceparent)
    return NO_IDS if match is None else {"trace_id": match[1], "span_id": match[2]}
