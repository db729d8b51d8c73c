"""The outside of a trial in a cluster, as one server: `python -m demo PORT`.

GET  /rates             the invented rates, for catalog
POST /webhooks…         the demo shop's server: takes a webhook, checks its signature and logs both
PUT  /secret            takes a signing secret, from `fiatgate demo`; it is kept in memory only
GET  /received/…        the deliveries to /webhooks/… as JSON, for `fiatgate demo`
GET  /healthz           for the pod's probes

Each fact is one line on the standard output. Only for trials: anyone who reaches the port reads and writes all of it.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from demo import rates
from demo.webhooks import KEPT, Delivery, Inbox, is_signed

BODY_MAX_BYTES: Final = 64 * 1024
IDLE_SECONDS: Final = 30
WEBHOOKS: Final = "/webhooks"
RECEIVED: Final = "/received"


class Outside(ThreadingHTTPServer):
    """The server with what it has received."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int]) -> None:
        super().__init__(address, _Handler)
        self.inbox = Inbox()
        self.secrets: deque[str] = deque(maxlen=KEPT)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    server: Outside

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._answer(200, b"ok\n", "text/plain")
        elif self.path == "/rates":
            self._answer(200, rates.document(), "application/json")
        elif self.path.startswith(f"{RECEIVED}/"):
            found = self.server.inbox.at(WEBHOOKS + self.path.removeprefix(RECEIVED))
            rows = [{"headers": each.headers, "body": each.body.decode("latin-1")} for each in found]
            self._answer(200, json.dumps(rows).encode(), "application/json")
        else:
            self._answer(404)

    def do_POST(self) -> None:
        body = self._body()
        if body is None or not f"{self.path}/".startswith(f"{WEBHOOKS}/"):
            self._answer(404 if body is not None else 413)
            return
        delivery = Delivery(
            path=self.path, headers={name.lower(): value for name, value in self.headers.items()}, body=body
        )
        self.server.inbox.add(delivery)
        _log(_described(delivery, [*self.server.secrets]))
        self._answer(204)

    def do_PUT(self) -> None:
        body = self._body()
        if body is None or self.path != "/secret":
            self._answer(404 if body is not None else 413)
            return
        self.server.secrets.append(body.decode("latin-1"))
        _log({"event": "secret_received"})
        self._answer(204)

    def _body(self) -> bytes | None:
        """Returns the body; None when it is too long, or its length unknown, which ends the connection."""
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > BODY_MAX_BYTES:
            self.close_connection = True
            return None
        return self.rfile.read(int(length))

    def _answer(self, status: int, body: bytes = b"", content_type: str = "") -> None:
        self.send_response(status)
        if content_type:
            self.send_header("Content-Type", content_type)
        if status != 204:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs no request: probes and polls are most of them."""


def _described(delivery: Delivery, secrets: list[str]) -> dict[str, Any]:
    if is_signed(delivery, secrets):
        signature = "valid"
    else:
        signature = "wrong" if secrets else "unknown: `fiatgate demo` brings the secret"
    try:
        payload = json.loads(delivery.body)
    except ValueError:
        payload = None
    facts = payload if isinstance(payload, dict) else {}
    named = {name: facts.get(name) for name in ("event_id", "order_id", "external_id", "status")}
    return {"event": "webhook_received", "path": delivery.path, "signature": signature, **named}


def _log(facts: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(facts, ensure_ascii=False) + "\n")
    sys.stdout.flush()


def main() -> None:
    server = Outside(("", int(sys.argv[1])))
    # Not in the handler itself: `shutdown` waits for the loop, which the handler has interrupted.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever()


if __name__ == "__main__":
    main()
