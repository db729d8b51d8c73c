"""An OpenTelemetry collector: a real HTTP server on loopback that reads OTLP and keeps the spans it gets."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Status

_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Collected:
    """One span. Ids are hexadecimal, `parent_id` empty for the first of a trace; `linked` are ids of traces."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: str
    failed: bool
    attributes: Mapping[str, Any]
    resource: Mapping[str, Any]
    linked: Sequence[str]

    @property
    def service(self) -> str:
        name: str = self.resource["service.name"]
        return name


class Collector:
    """Use as a context manager: `url` is its base URL, what `FIATGATE_TRACES_ENDPOINT` takes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._spans: list[Collected] = []
        self._requests = 0
        self._refusing = 0
        self.bodies: list[bytes] = []
        self.paths: set[str] = set()
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """From now on nobody answers there."""
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Inside the block nobody answers there."""
        self.close()
        try:
            yield
        finally:
            self._server = _Server(self._server.server_address, _handler_of(self))
            self.__enter__()

    @property
    def spans(self) -> list[Collected]:
        with self._changed:
            return list(self._spans)

    def way_to(self, span: Collected) -> list[Collected]:
        """From the first of its trace down to this one, waiting for those between: processes send when they like."""
        way = [span]
        while parent_id := way[0].parent_id:
            way[:0] = self.wait_for(lambda each, id=parent_id: each.span_id == id, f"parent of {way[0].name}")  # type: ignore[misc]
        return way

    def wait_for(
        self, condition: Callable[[Collected], bool], what: str, *, count: int = 1
    ) -> list[Collected]:
        """The spans that fulfil the condition, once there are `count`; TimeoutError when they don't come."""

        def found() -> list[Collected]:
            return [span for span in self._spans if condition(span)]

        with self._changed:
            if not self._changed.wait_for(lambda: len(found()) >= count, _WAIT_SECONDS):
                names = sorted({span.name for span in self._spans})
                raise TimeoutError(f"{len(found())} of {count} spans came, {what}; there are {names}")
            return found()

    def refuse(self, count: int) -> None:
        """Take none of the next requests."""
        with self._changed:
            self._refusing = count

    def wait_for_requests(self, count: int) -> None:
        """Return once there were so many, refused ones too."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._requests >= count, _WAIT_SECONDS):
                raise TimeoutError(f"{self._requests} of {count} requests came")

    def record(self, path: str, body: bytes) -> int:
        """Keep what came, and choose the status of the answer (called by the server's threads)."""
        spans = list(_read(ExportTraceServiceRequest.FromString(body)))
        with self._changed:
            self._requests += 1
            self._changed.notify_all()
            if self._refusing:
                self._refusing -= 1
                return 400
            self.paths.add(path)
            self.bodies.append(body)
            self._spans += spans
            return 200


def _read(message: ExportTraceServiceRequest) -> Iterator[Collected]:
    for of_resource in message.resource_spans:
        resource = _attributes(of_resource.resource.attributes)
        for of_scope in of_resource.scope_spans:
            for span in of_scope.spans:
                yield Collected(
                    trace_id=span.trace_id.hex(),
                    span_id=span.span_id.hex(),
                    parent_id=span.parent_span_id.hex(),
                    name=span.name,
                    kind=SpanMessage.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_").lower(),
                    failed=span.status.code == Status.STATUS_CODE_ERROR,
                    attributes=_attributes(span.attributes),
                    resource=resource,
                    linked=[link.trace_id.hex() for link in span.links],
                )


def _attributes(pairs: Sequence[KeyValue]) -> dict[str, Any]:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}


class _Server(ThreadingHTTPServer):
    daemon_threads = True


def _handler_of(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"  # a connection per request: who has closed is gone for everybody

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            self.send_response(collector.record(self.path, body))
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            """A test's output is its own."""

    return Handler
