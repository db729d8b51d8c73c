"""Answers that may be used again for a moment, because each act that changes them waits until that moment is over
(docs/decisions/0003).

A lease begins before its call is sent, so it ends before the wait of an act that the call did not see.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

from kit.base.clock import monotonic_seconds

Seconds = Callable[[], float]
LEASES_MAX: Final = 4096
"""Answers that are held, more than one process uses within a lease; of more, the one that ends first goes."""

K = TypeVar("K", bound=Hashable)
A = TypeVar("A")


class Leases(Generic[K, A]):
    """The answers of one kind of calls, for any thread.

    now_seconds  a monotonic clock
    """

    def __init__(self, now_seconds: Seconds = monotonic_seconds) -> None:
        self.now_seconds = now_seconds
        self._held: OrderedDict[K, tuple[float, A]] = OrderedDict()  # those that end first at the front
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def find(self, key: K) -> A | None:
        """Returns the answer for this key while its lease lasts."""
        until_seconds, answer = self._held.get(key, (0.0, None))
        return answer if self.now_seconds() < until_seconds else None

    def hold(self, key: K, answer: A, *, started_seconds: float, milliseconds: int) -> None:
        """Holds an answer whose call was started at that time. An answer without a lease (0 ms) is not held."""
        if not milliseconds:
            return
        with self._lock:
            self._held[key] = (started_seconds + milliseconds / 1000, answer)
            self._held.move_to_end(key)
            while len(self._held) > LEASES_MAX or self._first_has_ended():
                self._held.popitem(last=False)

    def answer(self, key: K, call: Callable[[], tuple[A, int]]) -> A:
        """Returns the answer whose lease lasts, else that of `call`, which returns it with its lease in milliseconds.
        Raises what the call raises.
        """
        leased = self.find(key)
        if leased is None:
            started_seconds = self.now_seconds()
            leased, milliseconds = call()
            self.hold(key, leased, started_seconds=started_seconds, milliseconds=milliseconds)
        return leased

    def _first_has_ended(self) -> bool:
        return bool(self._held) and next(iter(self._held.values()))[0] <= self.now_seconds()
