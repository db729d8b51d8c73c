"""Connects to the one of several PostgreSQL servers that accepts writes, the one of the last time first.

libpq tries the servers of its list in their order at each connection, and waits for seconds for one that does not
answer: a frozen machine, or one behind a dead network. After a failover every connection of a process would pay that
wait, and each holds a call. Here the first connection pays it for all.
"""

import threading
from typing import Any, Final, NamedTuple

import psycopg2
from psycopg2.extensions import connection as DriverConnection  # noqa: N812  a class with a small letter
from psycopg2.extensions import parse_dsn

from kit.base.clock import monotonic_seconds

SLOW_SECONDS: Final = 1.0
"""A server that refuses answers within milliseconds. One that fails after this time has not answered."""


class _Server(NamedTuple):
    host: str
    port: str


class Servers:
    """The servers of a database URL, for any thread."""

    def __init__(self, url: str) -> None:
        """ValueError if the URL has several ports, but not one for each host."""
        self._common = parse_dsn(url)
        hosts = self._common.pop("host", "").split(",")
        ports = self._common.pop("port", "").split(",")
        if len(ports) == 1:
            ports *= len(hosts)  # libpq too takes one port for all
        if len(ports) != len(hosts):
            raise ValueError(f"the database URL has {len(hosts)} hosts, but {len(ports)} ports")
        self._lock = threading.Lock()
        self._in_order = [_Server(*each) for each in zip(hosts, ports, strict=True)]

    def connect(self, **arguments: Any) -> DriverConnection:
        """Returns a new connection, with the driver's arguments for it.

        Raises psycopg2's errors; if no server accepts it, the message names each.
        """
        failures: list[psycopg2.OperationalError] = []
        with self._lock:
            in_order = list(self._in_order)
        for server in in_order:
            started_seconds = monotonic_seconds()
            values: dict[str, Any] = self._common | _named(server) | arguments
            try:
                connection = _connected(values)
            except psycopg2.OperationalError as error:
                failures.append(error)
                if monotonic_seconds() - started_seconds >= SLOW_SECONDS:
                    self._move(server, to_front=False)
            else:
                self._move(server, to_front=True)
                return connection
        raise failures[0] if len(failures) == 1 else psycopg2.OperationalError("".join(map(str, failures)))

    def _move(self, server: _Server, *, to_front: bool) -> None:
        if len(self._in_order) == 1:
            return
        with self._lock:
            self._in_order.remove(server)
            self._in_order.insert(0 if to_front else len(self._in_order), server)


def _connected(values: dict[str, Any]) -> DriverConnection:
    """Returns a connection whose transactions the role itself can't end by ALTER ROLE … SET transaction_timeout, which
    PostgreSQL knows from version 17 on. An older server is asked twice.
    """
    options = f"{values.get('options', '')} -c transaction_timeout=0"
    try:
        connection: DriverConnection = psycopg2.connect(**values | {"options": options})
    except psycopg2.OperationalError as error:
        if "transaction_timeout" not in str(error):
            raise
        connection = psycopg2.connect(**values)
    return connection


def _named(server: _Server) -> dict[str, str]:
    return {name: value for name, value in server._asdict().items() if value}
