"""A block that one process at a time may run, among all processes that share a database."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import text

from kit.db.database import Database

# The session holds the lock, not a transaction: none may be open while the network is used
# (docs/ARCHITECTURE.md#transactions). The server ends a session that is idle for too long, so a stopped process does
# not keep the lock for ever.
_ENTER = text(
    "SELECT set_config('idle_session_timeout', :milliseconds, false),"
    " pg_try_advisory_lock(hashtextextended(:what, 0)) AS entered"
)
# Only the process that has the lock unlocks: for any other, PostgreSQL would log a warning each time.
_LEAVE = text(
    "SELECT CASE WHEN :entered THEN pg_advisory_unlock(hashtextextended(:what, 0)) END,"
    " set_config('idle_session_timeout', :idle, false)"
)


@contextmanager
def alone(db: Database, what: str, *, at_most_seconds: int) -> Iterator[bool]:
    """Yields true when this process has the lock `what`, false when another process has it.

    The lock lasts until the end of the block, at most `at_most_seconds`. After that another process may take it, and
    the block raises `DatabaseUnavailable` at its end.
    """
    with db.autocommit() as connection:
        lock = {"what": what, "milliseconds": str(at_most_seconds * 1000)}
        entered = bool(connection.execute(_ENTER, lock).one().entered)
        try:
            yield entered
        finally:
            leaving = {"what": what, "entered": entered, "idle": db.idle_session_timeout}
            connection.execute(_LEAVE, leaving)
