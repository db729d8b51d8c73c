"""The pool's connections to PostgreSQL, with as few round trips for a transaction as its statements need.

psycopg2 sends BEGIN and COMMIT by themselves. Here BEGIN goes to the server together with the first statement, and
statements whose result is not needed go with the next one or with COMMIT. A round trip takes the two processes about
0.1 ms of processor time.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import psycopg2
from psycopg2 import extensions
from psycopg2.errors import FeatureNotSupported, InvalidSqlStatementName

from kit.db.watchdog import WatchedConnection, WatchedCursor

STALE: Final = (InvalidSqlStatementName, FeatureNotSupported)
"""The errors of a plan that is gone, and of one whose result has another type by now: a migration changed a column."""

_BEGIN: Final[Mapping[int | None, bytes]] = {
    None: b"BEGIN",
    extensions.ISOLATION_LEVEL_READ_COMMITTED: b"BEGIN",
    extensions.ISOLATION_LEVEL_REPEATABLE_READ: b"BEGIN ISOLATION LEVEL REPEATABLE READ",
}


class PoolConnection(WatchedConnection):
    """Begins a transaction with the first statement, as every DBAPI connection does, but sends BEGIN with it.

    single  each statement is its own transaction
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.cursor_factory = PoolCursor
        self.single = False
        self._begin = _BEGIN[None]
        self._held: list[bytes] = []
        self.autocommit = True  # the driver sends no BEGIN and no COMMIT

    def hold(self, statement: bytes) -> None:
        """Sends the statement with the next one, at the latest with COMMIT. Its error is raised there."""
        self._held.append(statement)

    def take_ahead(self) -> list[bytes]:
        """Returns the statements that must go to the server before the next one: BEGIN, and those that are held."""
        ahead = [] if self.single or self._is_in_transaction() else [self._begin]
        if self._held:
            ahead += self._held
            self.statements = 1 + len(self._held)
            self._held = []
        return ahead

    def set_isolation_level(self, level: int | None) -> None:
        """Sets the level of the next transactions: read committed or repeatable read."""
        self._begin = _BEGIN[level]

    def commit(self) -> None:
        """Raises InternalError when the server has rolled back: a statement had failed, and its error was caught."""
        if not (self.closed or self._held or self._is_in_transaction()):
            return
        try:
            tag = self.run([*self.take_ahead(), b"COMMIT"])
        except psycopg2.Error:
            if not self.closed:
                self.rollback()  # SQLAlchemy takes a transaction whose COMMIT failed for ended
            raise
        self.bound(None)
        if tag != "COMMIT":
            raise psycopg2.InternalError("the transaction was rolled back: one of its statements had failed")

    def rollback(self) -> None:
        self._held.clear()
        self.bound(None)
        if self.closed or self._is_in_transaction():
            self.run([b"ROLLBACK"])

    def run(self, statements: Sequence[bytes]) -> str | None:
        """Runs the statements in one round trip; returns PostgreSQL's tag of the last one."""
        with extensions.connection.cursor(self, cursor_factory=WatchedCursor) as cursor:
            try:
                cursor.execute(b"; ".join(statements))
            except STALE:
                self.close()  # a wrong guess about the plans would fail every later call
                raise
            return cursor.statusmessage

    def cursor(self, *args: Any, **kwargs: Any) -> Any:
        # The driver refuses a named cursor where it has not sent BEGIN, unless the cursor may outlive the transaction.
        return super().cursor(*args, **kwargs | ({"withhold": True} if args else {}))

    def _is_in_transaction(self) -> bool:
        return self.get_transaction_status() != extensions.TRANSACTION_STATUS_IDLE


class PoolCursor(WatchedCursor):
    def execute(self, query: Any, vars: Any = None) -> None:
        connection = cast(PoolConnection, self.connection)
        if self.name is not None:  # the driver writes DECLARE before the query
            if ahead := connection.take_ahead():
                connection.run(ahead)
            super().execute(query, vars)
            return
        # Before the held statements are taken: a value that can't be written raises, and they would be lost.
        statement = self.mogrify(query, vars)
        ahead = connection.take_ahead()
        try:
            super().execute(b"; ".join([*ahead, statement]))
        except STALE:
            if ahead:
                connection.close()
            raise

    def executemany(self, query: Any, vars_list: Any) -> None:
        connection = cast(PoolConnection, self.connection)
        if ahead := connection.take_ahead():
            connection.run(ahead)
        super().executemany(query, vars_list)
