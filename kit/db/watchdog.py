"""Ends a connection on which PostgreSQL does not answer.

PostgreSQL ends statements that take too long. A server that is frozen, or whose machine is, can't do that, and its
kernel still acknowledges all that is sent, so TCP sees nothing either: a statement would wait for ever. Here each
connection notes since when it waits; one thread of the process shuts the connections down that have waited too long.
The waiting call then fails as if the server had hung up, and no other connection is touched.
"""

import os
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar
from weakref import WeakSet

import psycopg2
from psycopg2.extensions import connection as DriverConnection  # noqa: N812  a class with a small letter
from psycopg2.extensions import cursor as DriverCursor  # noqa: N812

from kit.base.clock import monotonic_seconds
from kit.observe import metrics
from kit.observe.log import get_logger

CHECK_SECONDS: Final = 0.5
FURTHER_STATEMENT_SECONDS: Final = 3.0
"""For each further statement of one message: the server gives each of them its own time to wait for a lock."""

UNANSWERED: Final = metrics.counter(
    "db_unanswered", "Connections that were closed because the database did not answer in time"
)

_log = get_logger()

T = TypeVar("T")


class WatchedConnection(DriverConnection):
    """A psycopg2 connection that waits at most `answer_seconds` for the answer to each statement.

    Pass it as `connection_factory`. Commits and rollbacks of the driver itself are not watched: run them as statements.
    """

    def __init__(self, dsn: str, *, answer_seconds: float) -> None:
        super().__init__(dsn)
        self.cursor_factory = WatchedCursor
        self._usual_seconds = self._answer_seconds = answer_seconds
        self._lock = threading.Lock()
        self._waits_since: float | None = None
        self.statements = 1
        """The number of statements in the next message, each of which may wait for a lock."""
        _watchdog.watch(self)

    def bound(self, answer_seconds: float | None) -> None:
        """Sets the longest wait for each further answer; None: the usual one."""
        self._answer_seconds = self._usual_seconds if answer_seconds is None else answer_seconds

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Bounds the wait for the server inside the block."""
        self._waits_since = monotonic_seconds()
        try:
            yield
        finally:
            with self._lock:  # a connection that has its answer is not shut down any more
                self._waits_since = None
                self.statements = 1

    def waiting_for_each(self, items: Iterable[T]) -> Iterator[T]:
        """Yields the items inside such a block; its bound begins anew with each of them."""
        for item in items:
            self._waits_since = monotonic_seconds()
            yield item

    def end_if_unanswered(self, now_seconds: float) -> None:
        """Shuts the connection down if its server has been silent for too long; the waiting call fails at once."""
        with self._lock:
            since = self._waits_since
            at_most_seconds = self._answer_seconds + (self.statements - 1) * FURTHER_STATEMENT_SECONDS
            if since is None or now_seconds - since < at_most_seconds or self.closed:
                return
            self._waits_since = None
            # A copy of the descriptor: closing it leaves the connection's own to libpq.
            with socket.socket(fileno=os.dup(self.fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)
        UNANSWERED.inc()
        _log.warning(
            "database_unanswered",
            host=self.info.host,
            port=self.info.port,
            seconds=round(now_seconds - since, 1),
        )


class WatchedCursor(DriverCursor):
    """A cursor of such a connection: each statement is waited for under its bound."""

    def execute(self, query: Any, vars: Any = None) -> None:
        connection = self.connection
        assert isinstance(connection, WatchedConnection)
        with connection.waiting():
            super().execute(query, vars)

    def executemany(self, query: Any, vars_list: Any) -> None:
        connection = self.connection
        assert isinstance(connection, WatchedConnection)
        with connection.waiting():  # the driver runs them all: `rowcount` is the number of all their rows
            super().executemany(query, connection.waiting_for_each(vars_list))


class _Watchdog:
    """The thread of the process that looks at all its connections. It starts with the first one, so after any fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: WeakSet[WatchedConnection] = WeakSet()
        self._thread: threading.Thread | None = None

    def watch(self, connection: WatchedConnection) -> None:
        with self._lock:
            self._connections.add(connection)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="db-watchdog", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        pause = threading.Event()
        while not pause.wait(CHECK_SECONDS):
            self._check()

    def _check(self) -> None:
        # Its variables end with it: a connection that nothing else holds must not stay open during the pause.
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            # The connection may be closed meanwhile.
            with suppress(OSError, psycopg2.Error):
                connection.end_if_unanswered(monotonic_seconds())


_watchdog: Final = _Watchdog()
