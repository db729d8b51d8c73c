"""One result of a costly read for all calls of the next seconds."""

import threading
from collections.abc import Callable, Hashable
from datetime import timedelta
from typing import Generic, TypeVar

from kit.base.clock import Clock

T = TypeVar("T")


class Recent(Generic[T]):
    """Keeps the newest result. Calls that come while it is read wait for it, so one read runs at a time.

    for_time  how old a result may be
    """

    def __init__(self, for_time: timedelta, clock: Clock) -> None:
        self._for_time, self._clock = for_time, clock
        self._lock = threading.Lock()
        self._kept: tuple[Hashable, T] | None = None
        self._read_at = clock.now()

    def get(self, key: Hashable, read: Callable[[], T]) -> T:
        """Returns the kept result of this key, or that of `read`, whose errors it passes on."""
        with self._lock:
            age = self._clock.now() - self._read_at
            if self._kept is None or self._kept[0] != key or not timedelta(0) <= age < self._for_time:
                self._read_at = self._clock.now()
                self._kept = None
                self._kept = (key, read())
            return self._kept[1]
