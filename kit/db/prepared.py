"""Hot statements: planned once per connection and run by the driver directly.

For the statements of a purchase, and of each request of a signed-in browser: alone (`Database.one_or_none`) or on the
connection of a caller (`one_or_none`, `rows`). Measured alone, one thread: create-invoice's statement took PostgreSQL
600 us of CPU as text and 200 prepared; reading an invoice took our thread 240 us through SQLAlchemy and 30 here,
checkout and driver included. All other statements should use SQLAlchemy's.
"""

import re
import select
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar, cast

import psycopg2
from psycopg2.extensions import connection as DriverConnection  # noqa: N812  a class, whatever its spelling
from psycopg2.extensions import cursor
from psycopg2.extras import register_uuid
from sqlalchemy import BindParameter, Connection, Select
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import DBAPIError, MultipleResultsFound
from sqlalchemy.orm import Session

from kit.base.clock import monotonic_seconds
from kit.db.driver import STALE, PoolConnection

R = TypeVar("R")

# A plan made for an empty table may use the wrong index once the table has grown, until the next ANALYZE (seen: 1,500
# us instead of 400). So planning is repeated this often, which costs about a microsecond per call.
CALLS_PER_PLAN: Final = 500

_PARAMETER = re.compile(r"(?<![:\w]):([a-z_]+)")
_BOUND = re.compile(r"(?<![:\w]):(\w+)")


class Prepared(Generic[R]):
    """A statement for `Database.one_or_none`.

    name        unique among the service's prepared statements
    sql         with its parameters as `:parameter`
    parameters  the PostgreSQL type of each
    row         makes an R of the columns, passed one by one
    """

    def __init__(self, name: str, sql: str, parameters: Mapping[str, str], row: Callable[..., R]) -> None:
        numbers = {parameter: f"${number}" for number, parameter in enumerate(parameters, 1)}
        body = _PARAMETER.sub(lambda match: numbers[match[1]], sql)
        self.name = name
        types, values = ", ".join(parameters.values()), ", ".join(f"%({each})s" for each in parameters)
        self.prepare = f"PREPARE {name} {f'({types})' if types else ''} AS {body}"
        self.execute = f"EXECUTE {name} {f'({values})' if values else ''}"
        self.row = row


def sql_of(query: Select[Any]) -> str:
    """Returns the text of a query for `Prepared`: its `bindparam`s as `:parameter`, its constants as they are."""
    compiled = query.compile(dialect=_DIALECT)

    def written(match: re.Match[str]) -> str:
        bound = compiled.binds[match[1]]
        return match[0] if bound.required else _literal(bound)

    return _BOUND.sub(written, str(compiled))


_DIALECT: Final = postgresql.dialect(paramstyle="named")  # type: ignore[no-untyped-call]  # SQLAlchemy's gap


def _literal(bound: BindParameter[Any]) -> str:
    """Returns a constant as PostgreSQL reads it."""
    write = bound.type.literal_processor(_DIALECT)
    assert write is not None, f"no literal of {bound.type}"
    return write(bound.value)


class _Plans:
    """The statements that one connection has planned, with the calls since."""

    def __init__(self) -> None:
        self._calls: dict[str, int] = {}

    def make(self, statement: Prepared[Any], run: Callable[[str], object]) -> None:
        """Has the statement planned, unless it is. If this raises, the state of the connection's plans is unknown."""
        calls = self._calls.get(statement.name)
        if calls is None or calls >= CALLS_PER_PLAN:
            if calls is not None:
                run(f"DEALLOCATE {statement.name}")
            run(statement.prepare)
            calls = 0
        self._calls[statement.name] = calls + 1


_PLANS: Final = "plans of prepared statements"


def one_or_none(of: Session | Connection, statement: Prepared[R], values: Mapping[str, Any]) -> R | None:
    """Returns the only row of a hot statement, run as in `rows`; None when there is none.

    Changes of a session's objects that the statement must see need `flush()` first.
    """
    found = rows(of, statement, values)
    if len(found) > 1:
        raise MultipleResultsFound(f"{statement.name}: more than one row")
    return found[0] if found else None


def rows(of: Session | Connection, statement: Prepared[R], values: Mapping[str, Any]) -> list[R]:
    """Returns all rows of a hot statement, run on the connection of a transaction or on this one.

    The driver runs it. SQLAlchemy's way to the same driver would take 60 us more of our thread each time.
    """
    cursor = _planned(of, statement)
    try:
        cursor.execute(statement.execute, values)
    except psycopg2.Error as error:
        lost = bool(cursor.connection.closed)
        raise _failed(of, statement, error, usable=not (lost or isinstance(error, STALE))) from error
    return [statement.row(*columns) for columns in cursor] if cursor.description else []


def later(tx: Session, statement: Prepared[Any], values: Mapping[str, Any]) -> None:
    """Runs a hot statement without a round trip of its own: it goes to the server with the next statement of the
    transaction, at the latest with COMMIT, and its error is raised there.
    """
    cursor = _planned(tx, statement)
    cast(PoolConnection, cursor.connection).hold(cursor.mogrify(statement.execute, values))


def _planned(of: Session | Connection, statement: Prepared[Any]) -> cursor:
    """Returns a cursor on a connection that has planned the statement."""
    connection = of.connection() if isinstance(of, Session) else of
    opened = cast(cursor, connection.connection.cursor())
    plans: _Plans = connection.info.setdefault(_PLANS, _Plans())
    try:
        plans.make(statement, opened.execute)
    except psycopg2.Error as error:
        raise _failed(of, statement, error, usable=False) from error
    return opened


def _failed(
    of: Session | Connection, statement: Prepared[Any], error: psycopg2.Error, *, usable: bool
) -> Exception:
    """Returns the error as SQLAlchemy raises those of all other statements. Closes a connection that is not usable: it
    is lost, or a wrong guess about its plans would fail every later call.
    """
    if not usable:
        of.invalidate()
    lost = isinstance(error, psycopg2.InterfaceError)
    return DBAPIError.instance(
        statement.name, None, error, psycopg2.Error, hide_parameters=True, connection_invalidated=lost
    )


class PreparedConnections:
    """One connection per calling thread, in autocommit mode, where prepared statements stay prepared.

    No connection changes its thread and none needs a reset between two calls. A connection ends with its thread, so
    there are never more of them than calling threads.
    """

    def __init__(self, connect: Callable[[], DriverConnection], *, idle_seconds: float) -> None:
        self._connect = connect
        self._idle_seconds = idle_seconds
        self._thread = threading.local()
        self._all: weakref.WeakSet[DriverConnection] = weakref.WeakSet()

    def one_or_none(self, statement: Prepared[R], values: Mapping[str, Any]) -> R | None:
        """Returns the statement's only row. Raises psycopg2's errors."""
        own: _Own | None = getattr(self._thread, "own", None)
        if own is None or own.is_lost or own.idle_seconds > self._idle_seconds:
            if own is not None:
                own.connection.close()
            own = self._thread.own = _Own(self._connect())
            self._all.add(own.connection)
        return own.one_or_none(statement, values)

    @property
    def count(self) -> int:
        """The number of open connections."""
        return sum(not connection.closed for connection in list(self._all))

    def close(self) -> None:
        """Closes all of them; a thread that calls again gets a new one."""
        for connection in list(self._all):
            connection.close()


class _Own:
    """The connection of one thread."""

    def __init__(self, connection: DriverConnection) -> None:
        connection.autocommit = True
        register_uuid(conn_or_curs=connection)  # type: ignore[no-untyped-call]  # typeshed's gap
        self.connection = connection
        self._cursor = connection.cursor()
        self._plans = _Plans()
        self._used_at_seconds = monotonic_seconds()
        self._poller = select.poll()
        self._poller.register(connection.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)

    @property
    def is_lost(self) -> bool:
        """Whether this process or the server has closed the connection. The server's last message can be read then (as
        in `kit.db.connections`).
        """
        return bool(self.connection.closed or self._poller.poll(0))

    @property
    def idle_seconds(self) -> float:
        return monotonic_seconds() - self._used_at_seconds

    def one_or_none(self, statement: Prepared[R], values: Mapping[str, Any]) -> R | None:
        cursor, planned = self._cursor, False
        try:
            self._plans.make(statement, cursor.execute)
            planned = True
            cursor.execute(statement.execute, values)
        except psycopg2.Error as error:
            if not planned or isinstance(error, STALE):
                self.connection.close()  # a wrong guess about the plans would fail every later call
            raise
        self._used_at_seconds = monotonic_seconds()
        columns = cursor.fetchone()
        if columns is None:
            return None
        if cursor.rowcount > 1:
            raise psycopg2.ProgrammingError(f"{statement.name}: more than one row")
        return statement.row(*columns)
