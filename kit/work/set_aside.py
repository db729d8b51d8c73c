"""The rows at which a loop failed. The loop leaves each alone for a time that doubles with every failure.

Kept in memory: after a restart each is tried again at once.
"""

import threading
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

T = TypeVar("T")

FIRST: Final = timedelta(seconds=5)
LONGEST: Final = timedelta(minutes=5)
MOST: Final = 10_000
"""The most that are remembered. Beyond it the ones that failed longest ago are tried again early."""


class SetAside(Generic[T]):
    """The set of these rows, for any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[T, tuple[datetime, timedelta]] = {}  # until when, and for how long

    def add(self, what: T, now: datetime) -> timedelta:
        """Records a failure; returns how long to leave it alone."""
        with self._lock:
            known = self._known.pop(what, None)
            left_alone = FIRST if known is None else min(2 * known[1], LONGEST)
            self._known[what] = (now + left_alone, left_alone)
            if len(self._known) > MOST:
                del self._known[next(iter(self._known))]
        return left_alone

    def forget(self, what: T) -> None:
        """Records a success: the row is tried again at any time."""
        with self._lock:
            self._known.pop(what, None)

    def at(self, now: datetime) -> list[T]:
        """Returns the rows to leave alone now. Forgets rows whose last failure is long ago: another process finished
        them.
        """
        with self._lock:
            for what, (until, _) in list(self._known.items()):
                if until + 2 * LONGEST < now:
                    del self._known[what]
            return [what for what, (until, _) in self._known.items() if until > now]

    @property
    def count(self) -> int:
        with self._lock:
            return len(self._known)
