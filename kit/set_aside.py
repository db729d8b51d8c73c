"""What a loop failed at, each left alone for a while that doubles with every failure.

Kept in memory: after a restart each is tried again at once.
"""

import threading
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

T = TypeVar("T")

FIRST: Final = timedelta(seconds=5)
LONGEST: Final = timedelta(minutes=5)
MOST: Final = 10_000
"""So many are remembered. Beyond that the ones that failed longest ago are tried again early."""


class SetAside(Generic[T]):
    """By any number of threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[T, tuple[datetime, timedelta]] = {}  # until when, and for how long

    def add(self, what: T, now: datetime) -> timedelta:
        """It failed: leave it alone for the time that is returned."""
        with self._lock:
            known = self._known.pop(what, None)
            left_alone = FIRST if known is None else min(2 * known[1], LONGEST)
            self._known[what] = (now + left_alone, left_alone)
            if len(self._known) > MOST:
                del self._known[next(iter(self._known))]
        return left_alone

    def forget(self, what: T) -> None:
        """It went well."""
        with self._lock:
            self._known.pop(what, None)

    def at(self, now: datetime) -> list[T]:
        """Those that are left alone now. Also forgets what has not failed again for long: others have ended it."""
        with self._lock:
            for what, (until, _) in list(self._known.items()):
                if until + 2 * LONGEST < now:
                    del self._known[what]
            return [what for what, (until, _) in self._known.items() if until > now]

    @property
    def count(self) -> int:
        with self._lock:
            return len(self._known)
