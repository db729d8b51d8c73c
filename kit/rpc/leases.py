"""Answers that may be used again for a moment, because each act that changes them waits until that moment is over
(docs/decisions/0077).
"""

import threading
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

Seconds = Callable[[], float]
LEASES_MAX: Final = 1000
"""Answers that are held; of more, the one that was held first goes."""


class Leased(Protocol):
    """An answer that may be used for this time from the start of its call; 0: for its call only."""

    @property
    def lease_milliseconds(self) -> int: ...


K = TypeVar("K", bound=Hashable)
A = TypeVar("A", bound=Leased)


class Leases(Generic[K, A]):
    """The answers of one kind of calls."""

    def __init__(self, now_seconds: Seconds) -> None:
        self._now_seconds = now_seconds
        self._held: dict[K, tuple[float, A]] = {}
        self._lock = threading.Lock()

    def answer(self, key: K, call: Callable[[], A]) -> A:
        """Returns the answer whose lease lasts, else that of the call. Raises what the call raises."""
        started_seconds = self._now_seconds()
        held = self._held.get(key)
        if held is not None and started_seconds < held[0]:
            return held[1]
        answer = call()
        if answer.lease_milliseconds:
            with self._lock:
                self._held.pop(key, None)
                self._held[key] = (started_seconds + answer.lease_milliseconds / 1000, answer)
                if len(self._held) > LEASES_MAX:
                    del self._held[next(iter(self._held))]
        return answer
