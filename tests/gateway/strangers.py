"""Clients without manners: many connections at once, from many networks, over plain sockets.

All of 127.0.0.0/8 is this machine, so a client takes whichever address it likes, and each is a network of its own to
the gateway.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import requests
from prometheus_client.parser import text_string_to_metric_families

from deploy.local.ports import free_ports
from tests.gateway.process import gateway_process

ANSWER_SECONDS = 20.0
CLOSED = 0  # in place of a status: the connection ended without an answer
HANGS = -1  # neither came


@dataclass(frozen=True)
class Watched:
    url: str
    _metrics: str
    log: Path

    def counted(self, name: str, **labels: str) -> float:
        """The sum of the samples of that name that have those labels."""
        text = requests.get(f"http://{self._metrics}/metrics", timeout=10).text
        return sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )

    @property
    def address(self) -> tuple[str, int]:
        place = urlsplit(self.url)
        return place.hostname or "", place.port or 0


@contextmanager
def watched_gateway(addresses: Mapping[str, str], folder: Path, **settings: str) -> Iterator[Watched]:
    """One of these services, with its metrics."""
    metrics = f"127.0.0.1:{free_ports(1)[0]}"
    log = folder / "gateway.log"
    with gateway_process(addresses, log, FIATGATE_METRICS_BIND=metrics, **settings) as url:
        yield Watched(url, metrics, log)


async def answers(gateway: Watched, source: str, requests: Sequence[bytes]) -> Counter[int]:
    """The statuses that so many clients of one network get, all at once."""
    clients = [await Stranger.connected(gateway, source=source) for _ in requests]
    for client, request in zip(clients, requests, strict=True):
        client.send(request)
    found = Counter(await asyncio.gather(*(client.status() for client in clients)))
    for client in clients:
        client.close()
    return found


class Stranger:
    """One connection, which sends what it is given and reads the status that comes back."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    @classmethod
    async def connected(cls, gateway: Watched, *, source: str = "127.0.0.1") -> Stranger:
        connection = socket.socket()
        connection.setblocking(False)
        connection.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(connection, gateway.address)
        return cls(connection)

    def send(self, data: bytes) -> None:
        """Hands it to the system, as far as that takes it; the rest is never sent."""
        with suppress(BlockingIOError, ConnectionError):
            self._connection.send(data)

    async def status(self, seconds: float = ANSWER_SECONDS) -> int:
        """The status of the answer, or CLOSED, or HANGS."""
        received = b""
        try:
            async with asyncio.timeout(seconds):
                while b"\r\n" not in received:
                    data = await asyncio.get_running_loop().sock_recv(self._connection, 65536)
                    if not data:
                        return CLOSED
                    received += data
        except TimeoutError:
            return HANGS
        except ConnectionError:
            return CLOSED
        found = re.match(rb"HTTP/1\.1 (\d+)", received)
        return int(found[1]) if found else CLOSED

    def close(self) -> None:
        self._connection.close()


def networks(count: int) -> Sequence[str]:
    return [f"127.1.{number // 250}.{1 + number % 250}" for number in range(count)]


def head(method: str, path: str, **headers: Any) -> bytes:
    """The head of a request; of header names a `_` is a `-`."""
    lines = [f"{method} {path} HTTP/1.1", "Host: x"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode()
