"""A merchant's webhook endpoint: a real HTTP server on loopback that records what it gets, to the byte."""

import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from kit.base.clock import monotonic_seconds

_WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Received:
    """One request. Header names are lower-case; `at_seconds` is on the monotonic clock, when its body was read."""

    path: str
    headers: Mapping[str, str]
    body: bytes
    at_seconds: float


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How the endpoint answers; `delay_seconds` pass before the status line."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    delay_seconds: float = 0.0


class Receiver:
    """Use as a context manager. Every path is an endpoint: `url("orders")` and `received("orders")` belong together."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._received: list[Received] = []
        self._default: dict[str, Answer] = {}
        self._next: dict[str, deque[Answer]] = {}
        self._closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _handler_of(self))

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def url(self, path: str = "hook") -> str:
        """A callback URL of this endpoint."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{path}"

    def answer(self, answer: Answer, *, path: str = "hook") -> None:
        """From now on answer like this; 200 with an empty body before."""
        with self._changed:
            self._default[path] = answer

    def answer_next(self, *answers: Answer, path: str = "hook") -> None:
        """Give these answers one after the other, then the usual one again."""
        with self._changed:
            self._next.setdefault(path, deque()).extend(answers)

    def received(self, path: str = "hook") -> list[Received]:
        """All requests so far, oldest first."""
        with self._changed:
            return [request for request in self._received if request.path == f"/{path}"]

    def wait_for(
        self, count: int, *, path: str = "hook", timeout_seconds: float = _WAIT_SECONDS
    ) -> list[Received]:
        """The requests once there are at least `count`; TimeoutError when they do not come."""
        with self._changed:
            self._changed.wait_for(lambda: len(self.received(path)) >= count, timeout_seconds)
            found = self.received(path)
        if len(found) < count:
            raise TimeoutError(f"{len(found)} of {count} requests came within {timeout_seconds:g} s")
        return found

    def record(self, request: Received) -> Answer:
        """Keep a request and choose its answer (called by the server's threads)."""
        with self._changed:
            self._received.append(request)
            self._changed.notify_all()
            path = request.path.removeprefix("/")
            waiting = self._next.get(path)
            answer = waiting.popleft() if waiting else self._default.get(path, Answer())
        self._closing.wait(answer.delay_seconds)
        return answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A sender that hung up is no error of the endpoint's."""


def _handler_of(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {name.lower(): value for name, value in self.headers.items()}
            answer = receiver.record(Received(self.path, headers, body, monotonic_seconds()))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the tests look at what was recorded."""

    return Handler
