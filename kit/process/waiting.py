"""Waits at start for a database that is not up yet."""

from collections.abc import Callable
from typing import Final

from kit.base.clock import monotonic_seconds
from kit.base.config.processes import DatabaseSettings
from kit.observe.log import get_logger
from kit.work.worker import Outage, Stop

RETRY_SECONDS: Final = 0.25

_log = get_logger()


def once_the_database_answers(do: Callable[[], None], settings: DatabaseSettings, stop: Stop) -> bool:
    """Calls `do`, and waits at most `start_seconds` for the database; false when that time or the stop came first."""
    give_up_at = monotonic_seconds() + settings.start_seconds
    logged = ""
    while not stop.is_set():
        try:
            do()
            return True
        except Outage as outage:
            if monotonic_seconds() >= give_up_at:
                _log.error("database_wait_failed", error=str(outage))
                return False
            if logged != (logged := str(outage)):
                _log.warning("database_awaited", error=logged, at_most_seconds=settings.start_seconds)
        stop.wait(RETRY_SECONDS)
    return False
