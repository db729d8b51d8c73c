"""The merchant's server for webhooks during `fiatgate demo`: on loopback beside a local stack, in a cluster the pod of
demo/__main__.py.
"""

import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol, Self

import requests
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from demo.webhooks import Delivery, Inbox

WEBHOOK_SECONDS = 60
HTTP_SECONDS = 15
BODY_MAX_BYTES = 64 * 1024
_PATH = "/webhook"
_POLL_SECONDS = 0.2


class Receiver(Protocol):
    """An endpoint at `url`, the callback URL of the demo's invoice."""

    url: str

    def wait(self, count: int) -> list[Delivery]:
        """Returns the deliveries so far, once there are `count`; fewer when they don't come in time."""


class OwnReceiver:
    """A server of this process, on loopback. `answer` returns the status for a delivery; a delivery may come again."""

    def __init__(self, port: int = 0, answer: Callable[[Delivery], int] = lambda _delivery: 204) -> None:
        self._port = port
        self._answer = answer

    def __enter__(self) -> Self:
        inbox, answer = Inbox(), self._answer
        self._inbox = inbox

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = self.headers.get("Content-Length", "")
                if not (length.isascii() and length.isdigit()) or int(length) > BODY_MAX_BYTES:
                    self.send_error(413)
                    return
                headers = {name.lower(): value for name, value in self.headers.items()}
                delivery = Delivery(path=_PATH, headers=headers, body=self.rfile.read(int(length)))
                inbox.add(delivery)
                self.send_response(answer(delivery))
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self._port), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}{_PATH}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait(self, count: int) -> list[Delivery]:
        return self._inbox.at(_PATH, count=count, wait_seconds=WEBHOOK_SECONDS)


class PodReceiver:
    """A path of its own at the demo pod, whose address is `base`.
    Raises requests.RequestException while that is away.
    """

    def __init__(self, base: str) -> None:
        self._base = base
        self._name = secrets.token_hex(6)
        self.url = f"{base}/webhooks/{self._name}"

    def trust(self, secret: str) -> None:
        """Gives the pod a signing secret, so that its log says which webhooks are signed with it."""
        self._call("PUT", "/secret", secret)

    def wait(self, count: int) -> list[Delivery]:
        attempts = Retrying(
            retry=retry_if_result(lambda found: len(found) < count),
            stop=stop_after_delay(WEBHOOK_SECONDS),
            wait=wait_fixed(_POLL_SECONDS),
        )
        try:
            return attempts(self._received)
        except RetryError:
            return self._received()

    def _received(self) -> list[Delivery]:
        rows = self._call("GET", f"/received/{self._name}").json()
        return [
            Delivery(
                path=f"/webhooks/{self._name}", headers=row["headers"], body=row["body"].encode("latin-1")
            )
            for row in rows
        ]

    def _call(self, method: str, path: str, body: str | None = None) -> requests.Response:
        answer = requests.request(method, self._base + path, data=body, timeout=HTTP_SECONDS)
        answer.raise_for_status()
        return answer
