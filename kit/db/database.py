"""PostgreSQL: the pool, the ways to use it, and the meaning of its errors.

`transaction()` is for operations of several statements (an ORM session, one commit at the end). `autocommit()` is for a
single statement, which needs no BEGIN and COMMIT round trips. `one_or_none()` is for the few statements that every
request waits for (see `kit.db.prepared`). No other code commits. Each connection carries its limits (statement, lock
and idle timeouts) to the server, so that a lost client can't hold locks.
"""

import functools
import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from decimal import Decimal
from functools import partial
from typing import Any, ParamSpec, TypeVar, TypeVarTuple, cast

import psycopg2
from sqlalchemy import (
    Connection,
    DateTime,
    LargeBinary,
    MetaData,
    Numeric,
    Table,
    Text,
    Uuid,
    create_engine,
    exc,
    inspect,
    make_url,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session
from sqlalchemy.pool import QueuePool
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from kit.base import actors
from kit.base.seals import Seals
from kit.db import connections
from kit.db.connections import POOLED_IDLE_SECONDS, PREPARED_IDLE_SECONDS
from kit.db.driver import PoolConnection
from kit.db.prepared import Prepared, PreparedConnections
from kit.db.servers import Servers
from kit.db.watchdog import WatchedConnection
from kit.observe import metrics, tracing
from kit.work.worker import Outage

P = ParamSpec("P")
R = TypeVar("R")
Arguments = TypeVarTuple("Arguments")

POOL_TIMEOUTS = metrics.counter(
    "db_pool_timeouts", "Times that no connection of the pool became free in time"
)

CONFLICT_ATTEMPTS = 3
AFTER_COMMIT = "after_commit"
"""Where a session keeps the calls that are made after its commit."""
SEALS = "seals"
"""Where a session has the seals of its database (kit.base.seals)."""
TYPES: dict[Any, Any] = {
    datetime: DateTime(timezone=True),  # SQLAlchemy's own default drops the zone
    Decimal: Numeric(),
    uuid.UUID: Uuid(),
    str: Text(),
    bytes: LargeBinary(),
    dict[str, Any]: JSONB(),
}
"""Python type -> column type, for `type_annotation_map` of each service's declarative base."""


def metadata() -> MetaData:
    """Returns metadata whose constraints have predictable names: `refusing` and migrations find them by name."""
    return MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        }
    )


def table_of(entity: type[Any]) -> Table:
    """Returns the table of a mapped class, for statements that need no ORM entities."""
    return cast(Table, inspect(entity).local_table)


def as_json(rows: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> str:
    """Returns a row, or several, as `jsonb_populate_record` or `jsonb_populate_recordset` reads them."""
    return json.dumps(rows, default=_for_json)


def _for_json(value: object) -> str:
    return f"\\x{value.hex()}" if isinstance(value, bytes) else str(value)


class DatabaseUnavailable(Outage):
    """The database can't be reached or takes no more work. Callers receive `DB_UNAVAILABLE` and may try again soon."""


class DatabaseBusy(DatabaseUnavailable):
    """The database was reached, but a statement or a lock took longer than its limit."""


class TransactionConflict(DatabaseBusy):
    """The database aborted this transaction (deadlock, serialization failure): `retry_conflicts` runs it again."""


class Database:
    """One service's database: a pool of `pool_size` connections, and the only place that commits.

    `url` is `postgresql://user:password@host:port/name`; `seals` are those of the service, for acts and sealed rows.
    Timeouts are in seconds and enforced by the server.
    Make `pool_size` at least the number of threads that use it, and `pool_timeout_seconds` shorter than the
    deadlines of the calls it serves.
    """

    def __init__(
        self,
        url: str,
        *,
        name: str,
        pool_size: int,
        statement_timeout_seconds: float = 5,
        lock_timeout_seconds: float = 3,
        pool_timeout_seconds: float = 3,
        idle_seconds: float = POOLED_IDLE_SECONDS,
        prepared_idle_seconds: float = PREPARED_IDLE_SECONDS,
        seals: Seals | None = None,
    ) -> None:
        self.seals = seals
        self.idle_session_timeout = connections.server_closes_after(idle_seconds)
        self._span_attributes = {"db.system.name": "postgresql", "db.namespace": name}
        arguments = partial(
            connections.arguments,
            name,
            statement_timeout_seconds=statement_timeout_seconds,
            lock_timeout_seconds=lock_timeout_seconds,
        )
        servers = Servers(make_url(url).set(drivername="postgresql").render_as_string(hide_password=False))
        self._engine = create_engine(
            "postgresql+psycopg2://",
            creator=partial(servers.connect, **arguments(PoolConnection, idle_seconds=idle_seconds)),
            pool_size=pool_size,
            max_overflow=0,
            pool_timeout=pool_timeout_seconds,
            pool_use_lifo=True,
            hide_parameters=True,  # a failed statement's text goes to the log, its values must not
            use_native_hstore=False,  # saves a query on each new connection
        )
        connections.replace_unusable(self._engine, idle_seconds)
        self._prepared = PreparedConnections(
            partial(servers.connect, **arguments(WatchedConnection, idle_seconds=prepared_idle_seconds)),
            idle_seconds=prepared_idle_seconds,
        )

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """Yields a session that commits when the block ends cleanly and rolls back otherwise.

        The calls given to `after_commit` are made after the commit. Loaded objects stay readable afterwards.
        Raises `DatabaseUnavailable` (and its kinds) in place of the driver's connection errors, and in place of the
        commit of a change the refusal of an author who lacks a proof (kit.base.actors).
        """
        with (
            self._span("transaction"),
            _translated(),
            Session(self._engine, expire_on_commit=False, info={SEALS: self.seals}) as session,
        ):
            yield session
            if actors.lacks_proof() and _has_changed(session):
                actors.require_proof()
            session.commit()
        for callback, *arguments in session.info.get(AFTER_COMMIT, ()):
            callback(*arguments)

    @contextmanager
    def autocommit(self) -> Iterator[Connection]:
        """Yields a Core connection on which each statement is its own transaction: for single statements."""
        actors.require_proof()
        with self._span("statement"), _translated(), self._engine.connect() as connection:
            # SQLAlchemy's isolation level AUTOCOMMIT would do the same, but undoing it costs a round trip.
            driver = connection.connection.driver_connection
            assert isinstance(driver, PoolConnection)
            driver.single = True
            try:
                yield connection
            finally:
                driver.single = False

    def one_or_none(self, statement: Prepared[R], values: Mapping[str, Any]) -> R | None:
        """Runs a hot statement, which may write, on the calling thread's connection; commits, returns its row."""
        actors.require_proof()
        with self._span(statement.name), _translated():
            return self._prepared.one_or_none(statement, values)

    def _span(self, name: str) -> tracing.Span:
        """Returns a span that lasts from the wait for a connection to the commit."""
        return tracing.span(name, "client", self._span_attributes)

    def ping(self) -> None:
        """Makes one round trip; raises `DatabaseUnavailable` when the database does not answer."""
        with self.autocommit() as connection:
            connection.execute(text("SELECT 1"))

    def pool_use(self) -> dict[str, int]:
        """Returns the numbers of connections now. Of the pool: `in_use`, `idle` ones, including those that the server
        has closed since, and the `limit` of both together. Besides them `prepared`: the connections of the threads that
        have run hot statements.
        """
        pool = self._engine.pool
        assert isinstance(pool, QueuePool)
        return {
            "in_use": pool.checkedout(),
            "idle": pool.checkedin(),
            "limit": pool.size(),
            "prepared": self._prepared.count,
        }

    def dispose(self) -> None:
        """Closes the pooled connections and those of the hot statements."""
        self._engine.dispose()
        self._prepared.close()


def _has_changed(tx: Session) -> bool:
    """Returns whether the transaction has written anything, or locked it."""
    tx.flush()
    return bool(tx.scalar(text("SELECT pg_current_xact_id_if_assigned() IS NOT NULL")))


def bound_statements(tx: Session, *, seconds: int) -> None:
    """Sets the longest time of each further statement of this transaction, in place of the database's own."""
    tx.execute(text(f"SET LOCAL statement_timeout = '{seconds}s'"))
    driver = tx.connection().connection.driver_connection
    assert isinstance(driver, WatchedConnection)
    driver.bound(seconds + connections.ANSWER_MARGIN_SECONDS)


def seals_of(tx: Session) -> Seals:
    """Returns the seals of the session's database. Raises LookupError for a database that was opened without."""
    seals: Seals | None = tx.info.get(SEALS)
    if seals is None:
        raise LookupError("this database was opened without seals")
    return seals


def after_commit(tx: Session, callback: Callable[[*Arguments], object], *arguments: *Arguments) -> None:
    """Calls `callback(*arguments)` once the transaction is committed; never if it rolls back. Equal calls are made
    once. The callback must be quick and must not raise: the transaction's caller waits for it.
    """
    calls: list[tuple[Any, ...]] = tx.info.setdefault(AFTER_COMMIT, [])
    if (callback, *arguments) not in calls:
        calls.append((callback, *arguments))


def retry_conflicts(operation: Callable[P, R]) -> Callable[P, R]:
    """Runs an operation again, at most three times in all, when its transaction lost a deadlock or a serialization.

    Decorate the function that opens the transaction, and only functions that do nothing but database work:
    everything in it happens again. After the third time the caller receives `TransactionConflict`.
    """

    @functools.wraps(operation)
    def retried(*args: P.args, **kwargs: P.kwargs) -> R:
        retrying = Retrying(
            retry=retry_if_exception_type(TransactionConflict),
            stop=stop_after_attempt(CONFLICT_ATTEMPTS),
            wait=wait_random_exponential(multiplier=0.01, max=0.1),
            reraise=True,
        )
        return retrying(operation, *args, **kwargs)

    return retried


@contextmanager
def refusing(refusals: Mapping[str, Callable[[], Exception]]) -> Iterator[None]:
    """Turns the violation of a named constraint into its refusal; other violations pass unchanged.

    The statement has to run inside the block: with the ORM, flush in it (or put the block around the
    transaction).
    """
    try:
        yield
    except exc.IntegrityError as error:
        diagnostics = getattr(error.orig, "diag", None)
        refusal = refusals.get(getattr(diagnostics, "constraint_name", None) or "")
        if refusal is None:
            raise
        raise refusal() from error


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except exc.TimeoutError as error:
        POOL_TIMEOUTS.inc()
        raise DatabaseUnavailable("no free connection in the pool") from error
    except exc.DBAPIError as error:
        _hide_values(error)
        meaning = outage_of(error)
        if meaning is None:
            raise
        raise meaning from error
    except psycopg2.Error as error:  # of a prepared statement
        _cut_after_first_line(error)
        meaning = _meaning(error, lost=isinstance(error, psycopg2.InterfaceError))
        if meaning is None:
            raise
        raise meaning from error


def _hide_values(error: exc.DBAPIError) -> None:
    if error.orig is not None:
        line = _cut_after_first_line(error.orig)
        error.args = (f"({type(error.orig).__name__}) {line}",)


def _cut_after_first_line(error: BaseException) -> str:
    line = first_line(error)
    error.args = (line,)
    return line


def first_line(error: object) -> str:
    """Returns the first line of PostgreSQL's message: the rest quotes the failing row or the statement with its values,
    and the log would keep it. Of several servers that could not be reached each has a line, and all are returned.
    """
    first, *rest = str(error).strip().split("\n")
    return "; ".join([first, *(line for line in rest if line.startswith("connection to server at "))])


# SQLSTATE, or the class it starts with (https://www.postgresql.org/docs/current/errcodes-appendix.html).
_CONFLICTS = ("40001", "40P01")
_BUSY = ("57014", "55P03")  # statement_timeout, lock_timeout
_AWAY = (
    "08",
    "53",
    "57P",
    "25006",
    "25P03",
)  # connection, resources, shutdown, became a standby, idle too long


def outage_of(error: exc.DBAPIError) -> DatabaseUnavailable | None:
    """Returns the error that callers get in place of this one; None when it is about a value or a statement."""
    return _meaning(error.orig, lost=error.connection_invalidated)


def _meaning(error: BaseException | None, *, lost: bool) -> DatabaseUnavailable | None:
    """Returns the error that callers get in place of the driver's; None when it is a bug, not an outage.

    lost  whether the connection is known to be gone
    """
    summary = str(error)
    code: str | None = getattr(error, "pgcode", None)
    if code is None:  # the server sent no answer
        lost = lost or isinstance(error, psycopg2.OperationalError)
        return DatabaseUnavailable(summary) if lost else None
    if code in _CONFLICTS:
        return TransactionConflict(summary)
    if code in _BUSY:
        return DatabaseBusy(summary)
    if code.startswith(_AWAY) or lost:
        return DatabaseUnavailable(summary)
    return None
