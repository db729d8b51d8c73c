"""A merchant's endpoint that costs as little as HTTP/1.1 allows: `python -m benchmarks.delivery.receiver PORT`.

POST is answered with 200 and its arrival kept, on the monotonic clock that all processes of a machine share; POST to
/hang is never answered, to /drip with 200 and a byte a second, to /fail with 500; GET tells all arrivals. It listens on
as many loopback addresses as there are hosts to hang.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Final, cast

import uvloop

from kit.base.clock import monotonic_seconds

HOSTS: Final = [f"127.0.1.{number}" for number in range(1, 201)]
HANG: Final = "/hang"
DRIP: Final = "/drip"
FAIL: Final = "/fail"


class Receiver(asyncio.Protocol):
    arrivals: dict[str, float] = {}  # noqa: RUF012  shared by all connections on purpose

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._data = b""

    def data_received(self, data: bytes) -> None:
        self._data += data
        while (end := self._data.find(b"\r\n\r\n")) >= 0:
            head = self._data[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:])}
            after = end + 4 + int(headers.get("content-length", "0"))
            if len(self._data) < after:
                return
            self._data = self._data[after:]
            method, path, _ = head[0].split(" ")
            if method == "GET":
                self._answer(json.dumps(self.arrivals).encode())
            elif path == DRIP:
                self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
                self._drip()
            elif path == FAIL:
                self._transport.write(b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n")
            elif path != HANG:
                self.arrivals[headers.get("x-idempotency-key", "")] = monotonic_seconds()
                self._answer(b"ok")

    def _drip(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(b"x")
            asyncio.get_running_loop().call_later(1, self._drip)

    def _answer(self, body: bytes) -> None:
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


async def receive(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Receiver, ["127.0.0.1", *HOSTS], port, backlog=1024)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(receive(int(sys.argv[1])))
