"""A source of demo rates on loopback: `python -m deploy.local.demo_rates PORT`.

`make run` has no real source of rates, and the catalog does not use rates older than ten minutes. So its poller reads
these, in the same way as a real source. Standard library only, to start fast and stay small.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from demo import rates
from deploy.local import child


def command(port: int) -> list[str]:
    """Returns the command of the server in the foreground; it stops when its parent dies."""
    return child.command(sys.executable, "-m", "deploy.local.demo_rates", str(port))


def sources(port: int) -> list[dict[str, Any]]:
    """Returns the catalog's setting that makes it read this server."""
    return rates.sources(f"http://127.0.0.1:{port}/")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = rates.document()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing: the catalog logs each pull."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), _Handler).serve_forever()
