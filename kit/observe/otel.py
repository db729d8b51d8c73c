"""The spans of `kit.observe.tracing`, made and sent by OpenTelemetry's SDK. Only this module imports it.

Ended spans wait in a bounded queue and a thread sends them in batches. While the collector is away they are dropped
after some seconds, and a full queue drops its oldest: no request ever waits for the collector.

The SDK's own variables hold where we have no setting: OTEL_EXPORTER_OTLP_HEADERS, _CERTIFICATE, _COMPRESSION,
_TIMEOUT; OTEL_BSP_* for the queue; OTEL_RESOURCE_ATTRIBUTES.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Mapping, Sequence
from contextvars import Token
from importlib import metadata
from types import TracebackType
from typing import Final, Self

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from kit.base.config.processes import Settings
from kit.observe import metrics, tracing
from kit.observe.log import get_logger
from kit.observe.tracing import Kind, Span, Value

TRACES_PATH: Final = "/v1/traces"
CLOSE_SECONDS: Final = 3.0

SENT: Final = metrics.counter("trace_spans_sent", "Spans that the collector took")
NOT_SENT: Final = metrics.counter(
    "trace_spans_not_sent", "Spans that were lost because the collector did not take them"
)
DROPPED: Final = metrics.counter(
    "trace_spans_dropped", "Spans that are lost because the queue to the collector was full"
)

_KINDS: Final = {kind.name.lower(): kind for kind in trace.SpanKind}
_FAILED: Final = trace.Status(trace.StatusCode.ERROR)
_NO_TRACE: Final = Context()

_log = get_logger()


class Spans:
    """Makes the spans of one process and sends them, from now on until `close`."""

    def __init__(self, service: str, settings: Settings) -> None:
        # `_Sender` logs once that the collector is away; the exporter would log it again and again.
        logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)
        self._provider = TracerProvider(
            sampler=ParentBased(TraceIdRatioBased(float(settings.traces_ratio))),
            resource=Resource.create(
                {
                    "service.namespace": "fiatgate",
                    "service.name": f"fiatgate-{service}",
                    "service.version": metadata.version("fiatgate"),
                    "service.instance.id": f"{socket.gethostname()}:{os.getpid()}",
                }
            ),
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(_Queue(_Sender(settings.traces_endpoint)))
        self._tracer = self._provider.get_tracer("fiatgate", metadata.version("fiatgate"))

    def close(self) -> None:
        """Stops within `CLOSE_SECONDS`, even if the collector is away: spans that are not sent by then are lost."""
        closing = threading.Thread(target=self._provider.shutdown, name="traces-close", daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)

    def part(self, name: str, kind: Kind, attributes: Mapping[str, Value] | None) -> Span:
        whole = tracing.current.get()
        if not (isinstance(whole, _Made) and whole.span.is_recording()):
            return tracing.NOTHING
        return self._child(whole.span, name, kind, attributes)

    def continued(
        self, name: str, kind: Kind, traceparent: str, attributes: Mapping[str, Value] | None
    ) -> Span:
        parent = _read(traceparent)
        if parent is None:
            return self._first(name, kind, attributes)
        whole = trace.NonRecordingSpan(parent)
        return self._child(whole, name, kind, attributes) if parent.trace_flags.sampled else _Made(whole)

    def begun(self, name: str, kind: Kind, linked_to: str, attributes: Mapping[str, Value] | None) -> Span:
        stranger = _read(linked_to)
        return self._first(name, kind, attributes, () if stranger is None else [trace.Link(stranger)])

    def _child(
        self, whole: trace.Span, name: str, kind: Kind, attributes: Mapping[str, Value] | None
    ) -> Span:
        context = trace.set_span_in_context(whole, _NO_TRACE)
        return _Made(self._tracer.start_span(name, context, _KINDS[kind], attributes))

    def _first(
        self,
        name: str,
        kind: Kind,
        attributes: Mapping[str, Value] | None,
        links: Sequence[trace.Link] = (),
    ) -> Span:
        return _Made(self._tracer.start_span(name, _NO_TRACE, _KINDS[kind], attributes, links))


class _Made(Span):
    """A span that is sent when it has ended. One of a trace that is not kept only passes that decision on."""

    __slots__ = ("_token", "span")

    _token: Token[Span]

    def __init__(self, span: trace.Span) -> None:
        self.span = span

    def set_attribute(self, name: str, value: Value) -> None:
        self.span.set_attribute(name, value)

    def rename(self, name: str) -> None:
        self.span.update_name(name)

    def fail(self, kind: str) -> None:
        self.span.set_status(_FAILED)
        self.span.set_attribute("error.type", kind)

    @property
    def traceparent(self) -> str:
        of = self.span.get_span_context()
        return f"00-{of.trace_id:032x}-{of.span_id:016x}-{of.trace_flags:02x}"

    def __enter__(self) -> Self:
        self._token = tracing.current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        tracing.current.reset(self._token)
        if kind is not None and not getattr(kind, "is_answer", False):
            self.fail(kind.__qualname__)
        self.span.end()


class _Queue(BatchSpanProcessor):
    """The spans that wait to be sent. The SDK drops the oldest silently when the queue is full: here that is counted,
    and logged once until there is room again.
    """

    def __init__(self, sender: SpanExporter) -> None:
        super().__init__(sender)
        self._is_full = False

    def on_end(self, span: ReadableSpan) -> None:
        # The SDK's metrics of its queue need a meter provider and are experimental.
        waiting = self._batch_processor._queue
        is_full = len(waiting) == waiting.maxlen
        if is_full:
            DROPPED.inc()
            if not self._is_full:
                _log.warning("traces_dropped", waiting=len(waiting))
        self._is_full = is_full or (self._is_full and bool(waiting))
        super().on_end(span)


class _Sender(SpanExporter):
    """Sends and counts spans; logs once when the collector stops taking them, and once when it takes them again."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._inner = OTLPSpanExporter(endpoint + TRACES_PATH)
        self._is_away = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        took = result is SpanExportResult.SUCCESS
        (SENT if took else NOT_SENT).inc(len(spans))
        if took and self._is_away:
            _log.info("traces_resumed", endpoint=self._endpoint)
        elif not took and not self._is_away:
            _log.warning("traces_not_sent", endpoint=self._endpoint)
        self._is_away = not took
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()  # type: ignore[no-untyped-call]  # theirs has no types


def _read(traceparent: str) -> trace.SpanContext | None:
    match = tracing.parts(traceparent)
    if match is None:
        return None
    trace_id, span_id, flags = (int(part, 16) for part in match.groups())
    return trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags))
