"""Writes at one node alone, past all that leads others to the primary: what it accepts, it accepts as a primary.

A node that was frozen or cut off does not know that another one has its place. It may go on answering reads for a
moment. A commit that it answers then is lost.
"""

import itertools
import threading
from collections.abc import Sequence
from contextlib import closing
from typing import Final, Self

import psycopg2
from psycopg2.extensions import connection as Connection

from kit.base.clock import monotonic_seconds
from tests.failover.patroni import ANSWER_SECONDS, is_primary

WRITERS: Final = 4
ON_THEIR_WAY_SECONDS: Final = 1
"""Until every answer has come that was on its way."""
PAUSE_SECONDS: Final = 0.05
END_SECONDS: Final = 60


class Witness:
    """Use as a context manager, while the node is the primary: it must accept a row of each writer then.

    `own` is the URL of the node, `primary` that of whichever node is the primary. `accepted` are the numbers of the
    rows that the node accepted after `begin`, `tried` of those that it was asked to.
    """

    def __init__(self, own: str, primary: str) -> None:
        self._own = own
        self._primary = primary
        self._over = threading.Event()
        self._writers: list[threading.Thread] = []
        self._reader = threading.Thread(target=self._read, name="reader")
        self._connections: list[Connection] = []
        self._numbers = itertools.count(1)
        self._last_as_primary_seconds: float | None = None
        self.accepted: list[int] = []
        self.tried: list[int] = []

    def __enter__(self) -> Self:
        with closing(_connected(self._primary)) as connection, connection.cursor() as cursor:
            cursor.execute("CREATE TABLE IF NOT EXISTS witnessed (number bigint PRIMARY KEY)")
            cursor.execute("SELECT coalesce(max(number), 0) FROM witnessed")
            last = sum(number for (number,) in cursor.fetchall())
        self._connections = [_connected(self._own) for _ in range(WRITERS)]
        for number, each in enumerate(self._connections, last + 1):
            _write(each, number)
        self._numbers = itertools.count(last + WRITERS + 1)
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in (self._reader, *self._writers):
            if thread.ident is not None:
                thread.join(END_SECONDS)

    def begin(self) -> None:
        """Writes from now on; the node must have stopped to be the primary that others know."""
        self._over.wait(ON_THEIR_WAY_SECONDS)
        self._writers = [
            threading.Thread(target=self._keep_writing, args=(each,), name="writer", daemon=True)
            for each in self._connections
        ]
        for thread in (self._reader, *self._writers):
            thread.start()

    def primary_for_seconds(self, since_seconds: float) -> float:
        """Returns how long after a time the node still called itself the primary; 0 when it did not."""
        last = self._last_as_primary_seconds
        return 0.0 if last is None else max(0.0, last - since_seconds)

    def violations(self) -> list[str]:
        """Returns what the node should not have done. The primary must answer."""
        return told(self.tried, self.accepted, self._kept(), waiting=any(t.is_alive() for t in self._writers))

    def _kept(self) -> set[int]:
        with closing(_connected(self._primary)) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT number FROM witnessed")
            return {number for (number,) in cursor.fetchall()}

    def _keep_writing(self, connection: Connection) -> None:
        """One row after the other, at first over a connection that was open before."""
        while not self._over.is_set():
            number = next(self._numbers)
            self.tried.append(number)
            try:
                _write(connection, number)
                self.accepted.append(number)
            except psycopg2.Error:
                connection.close()
            self._over.wait(PAUSE_SECONDS)
            while connection.closed and not self._over.is_set():
                try:
                    connection = _connected(self._own)
                except psycopg2.OperationalError:
                    self._over.wait(PAUSE_SECONDS)
        connection.close()

    def _read(self) -> None:
        while not self._over.wait(PAUSE_SECONDS):
            if is_primary(self._own):
                self._last_as_primary_seconds = monotonic_seconds()


def told(tried: Sequence[int], accepted: Sequence[int], kept: set[int], *, waiting: bool) -> list[str]:
    """Returns a line for each kind of fault. `kept` are all rows that the nodes have in the end."""
    found = []
    if not tried:
        found.append("the node that was cut off was asked to accept nothing")
    if accepted:
        lost = len(set(accepted) - kept)
        found.append(f"the node that was cut off accepted {len(accepted)} rows, of which {lost} are lost")
    if begun := kept & set(tried) - set(accepted):
        found.append(f"{len(begun)} rows are there that only the node that was cut off was asked to accept")
    if waiting:
        found.append("the node that was cut off still leaves a commit without an answer")
    return found


def _write(connection: Connection, number: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO witnessed (number) VALUES (%s)", (number,))


def _connected(url: str) -> Connection:
    """Returns a connection of which each statement is a transaction."""
    connection = psycopg2.connect(url, connect_timeout=ANSWER_SECONDS)
    connection.autocommit = True
    return connection
