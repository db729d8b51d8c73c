"""One process at a time, over all that share a database."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import text

from kit.db import Database

# The session holds the lock, not a transaction: none may be open while the network is used
# (docs/ARCHITECTURE.md#transactions). The server ends a session that is idle for too long, so a stopped process does
# not keep the lock for ever.
_ENTER = text(
    "SELECT set_config('idle_session_timeout', :milliseconds, false),"
    " pg_try_advisory_lock(hashtextextended(:what, 0)) AS entered"
)
# Only who came in has something to unlock: of anybody else PostgreSQL's log would get a warning each time.
_LEAVE = text(
    "SELECT CASE WHEN :entered THEN pg_advisory_unlock(hashtextextended(:what, 0)) END,"
    " set_config('idle_session_timeout', '0', false)"
)


@contextmanager
def alone(db: Database, what: str, *, at_most_seconds: int) -> Iterator[bool]:
    """False when somebody else is inside a block of this name, and true for the one who is: nobody comes in meanwhile.

    After `at_most_seconds` without its end somebody may; the block raises `DatabaseUnavailable` at its end then.
    """
    with db.autocommit() as connection:
        asked = {"what": what, "milliseconds": str(at_most_seconds * 1000)}
        entered = bool(connection.execute(_ENTER, asked).one().entered)
        try:
            yield entered
        finally:
            connection.execute(_LEAVE, {"what": what, "entered": entered})
