"""The bare path: what this machine gives to anybody who takes an HTTP request to a row in PostgreSQL this way.

Falcon ASGI under gunicorn's asgi worker, one grpc.aio call, a threaded gRPC server, one psycopg2 INSERT: the parts of
the gateway and a service, without anything that makes them Fiatgate. `python -m benchmarks.bare serve PORT URL` is the
service, `python -m benchmarks.bare gateway PORT SERVICE_PORT` the gateway.
"""

from __future__ import annotations

import sys
import threading
import uuid
from concurrent import futures
from typing import Any

import falcon
import falcon.asgi
import grpc
import psycopg2
from gunicorn.app.base import BaseApplication

METHOD = "/bare.Service/Insert"
TABLE = (
    "CREATE TABLE IF NOT EXISTS bare (id uuid PRIMARY KEY, body text NOT NULL, at timestamptz DEFAULT now())"
)
THREADS = 4


def serve(port: int, url: str) -> None:
    """The service: one INSERT per call, a connection per thread."""
    local = threading.local()

    def insert(request: bytes, _context: grpc.ServicerContext) -> bytes:
        if not hasattr(local, "cursor"):
            connection = psycopg2.connect(url)
            connection.autocommit = True
            local.cursor = connection.cursor()
        id = uuid.uuid4()
        local.cursor.execute("INSERT INTO bare (id, body) VALUES (%s, %s)", (str(id), request.decode()))
        return id.bytes

    handler = grpc.method_handlers_generic_handler(
        "bare.Service", {"Insert": grpc.unary_unary_rpc_method_handler(insert)}
    )
    server = grpc.server(futures.ThreadPoolExecutor(THREADS))
    server.add_generic_rpc_handlers((handler,))
    server.add_insecure_port(f"127.0.0.1:{port}")
    server.start()
    server.wait_for_termination()


class _Resource:
    def __init__(self, service_port: int) -> None:
        self._service_port = service_port
        self._call: Any = None

    async def on_post(self, req: falcon.asgi.Request, resp: falcon.asgi.Response) -> None:
        if self._call is None:  # made inside the worker's loop, after the fork
            self._call = grpc.aio.insecure_channel(f"127.0.0.1:{self._service_port}").unary_unary(METHOD)
        body = await req.get_media()
        answer = await self._call(body["external_id"].encode(), wait_for_ready=True)
        resp.status = falcon.HTTP_201
        resp.media = {"id": answer.hex()}


class _Gateway(BaseApplication):  # type: ignore[misc]  # gunicorn ships no types
    def __init__(self, port: int, service_port: int, workers: int) -> None:
        self._port, self._service_port, self._workers = port, service_port, workers
        super().__init__()

    def load_config(self) -> None:
        settings = {
            "bind": f"127.0.0.1:{self._port}",
            "workers": self._workers,
            "worker_class": "asgi",
            "loglevel": "error",
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Any:
        app = falcon.asgi.App()
        app.add_route("/", _Resource(self._service_port))
        return app


def main() -> None:
    mode, port, other, *rest = sys.argv[1:]
    if mode == "serve":
        serve(int(port), other)
    else:
        _Gateway(int(port), int(other), int(rest[0])).run()


if __name__ == "__main__":
    main()
