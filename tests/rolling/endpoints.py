"""Where the pods of a Service are: a name server that tells of those that are ready, and keeps each answer for a while,
as a cluster's does.
"""

import socketserver
import threading
from collections.abc import Callable, Sequence
from typing import Final, Self

import dns.message

from kit.base.clock import monotonic_seconds
from tests.kit.name_server import NameServer

DOMAIN: Final = "rolling.test"


class Endpoints:
    """Which pods of a Service are ready: told by a name server, as a cluster tells of a headless Service.

    kept_seconds  so long an answer is given again, whatever has changed meanwhile; one without addresses is not kept
    """

    def __init__(self, kept_seconds: float = 0.0) -> None:
        self._names = NameServer()
        self._lock = threading.Lock()
        self._ready: dict[str, list[str]] = {}
        self._kept_seconds = kept_seconds
        self._kept_until: dict[str, float] = {}  # by service; of answers with addresses
        self._server = socketserver.ThreadingUDPServer(("127.0.0.1", 0), self._handler())

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def target(self, service: str, port: int) -> str:
        """What a client of ours is given for the service's address: the name, and who knows it."""
        return f"dns://127.0.0.1:{self._server.server_address[1]}/{service}.{DOMAIN}:{port}"

    def of(self, service: str) -> Sequence[str]:
        with self._lock:
            return list(self._ready.get(service, ()))

    def asked(self, service: str) -> int:
        """How often somebody looked for it."""
        return self._names.asked[f"{service}.{DOMAIN}"]

    def add(self, service: str, address: str) -> None:
        self._change(service, lambda ready: ready.append(address))

    def remove(self, service: str, address: str) -> None:
        self._change(service, lambda ready: ready.remove(address))

    def _change(self, service: str, change: Callable[[list[str]], None]) -> None:
        with self._lock:
            change(self._ready.setdefault(service, []))

    def _answer(self, wire: bytes) -> bytes | None:
        (question,) = dns.message.from_wire(wire).question
        service = question.name.to_text().split(".")[0]
        with self._lock:
            now = monotonic_seconds()
            if now >= self._kept_until.get(service, now):
                ready = list(self._ready.get(service, ()))
                self._names.tell(f"{service}.{DOMAIN}", ready)
                self._kept_until[service] = now + self._kept_seconds if ready else now
            return self._names.answer(wire)

    def _handler(self) -> type[socketserver.BaseRequestHandler]:
        answer = self._answer

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                wire, reply_to = self.request
                if (known := answer(wire)) is not None:
                    reply_to.sendto(known, self.client_address)

        return Handler
