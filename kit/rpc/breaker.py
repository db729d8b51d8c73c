"""A breaker: while a peer hangs, its callers do not wait. The first calls wait for their whole limit, the next are
refused at once.

It is our own, because libraries count failures of any kind. Here only waiting counts: a peer that refuses quickly, or
that is away, costs its callers no time.
"""

from __future__ import annotations  # grpc's classes are generic in their stubs only

import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

from kit.base.clock import monotonic_seconds
from kit.observe import metrics
from kit.observe.log import get_logger
from kit.rpc import deadline, errors
from kit.rpc.client import MARGIN_SECONDS
from kit.rpc.errors import Refused
from kit.rpc.limits import LEAST_USEFUL_SECONDS

R = TypeVar("R")

OPENED: Final = metrics.counter(
    "rpc_breaker_opened",
    "Times that a service was found hanging and calls to it were refused at once",
    ["peer", "calls"],
)
REST_SECONDS: Final = 1.0
"""How long all calls are refused; then one call at a time finds out whether the peer answers again."""

_log = get_logger()


class Breaker:
    """The breaker of one kind of calls to one peer, for any number of threads.

    calls    the name of the kind, in metrics and log lines
    seconds  the longest wait of a call; a failed call that waited at least half of it opens the breaker
    """

    def __init__(self, peer: str, *, calls: str, seconds: float) -> None:
        self._peer = peer
        self._calls = calls
        self._seconds = seconds
        self._lock = threading.Lock()
        self._is_open = False
        self._rests_until_seconds = 0.0
        OPENED.labels(peer, calls)

    def call(self, method: Callable[..., R], request: Any) -> R:
        """Returns the answer of a stub's method. Raises `Refused`: the peer's own, or DB_UNAVAILABLE."""
        self._admit()
        started_seconds = monotonic_seconds()
        try:
            answer = method(request, timeout=self._seconds)
        except Refused as refused:
            waited_seconds = monotonic_seconds() - started_seconds
            if refused.reason != "DB_UNAVAILABLE":
                self._close()
            elif waited_seconds >= self._seconds / 2:
                self._open(waited_seconds)
            elif not _caller_ran_out_of_time():
                self._close()
            raise
        self._close()
        return answer

    def _admit(self) -> None:
        """Raises DB_UNAVAILABLE while the breaker is open. One call passes after each rest."""
        if not self._is_open:
            return
        with self._lock:
            now_seconds = monotonic_seconds()
            if self._is_open and now_seconds < self._rests_until_seconds:
                raise errors.database_unavailable()
            # The call that passes now ends within `seconds`; no other one passes until then.
            self._rests_until_seconds = now_seconds + self._seconds

    def _open(self, waited_seconds: float) -> None:
        with self._lock:
            newly, self._is_open = not self._is_open, True
            self._rests_until_seconds = monotonic_seconds() + REST_SECONDS
        if newly:
            OPENED.labels(self._peer, self._calls).inc()
            _log.warning(
                "peer_hung",
                peer_service=self._peer,
                calls=self._calls,
                waited_seconds=round(waited_seconds, 3),
            )

    def _close(self) -> None:
        if not self._is_open:
            return
        with self._lock:
            newly, self._is_open = self._is_open, False
        if newly:
            _log.info("peer_recovered", peer_service=self._peer, calls=self._calls)


def _caller_ran_out_of_time() -> bool:
    """Returns whether the call may have ended at its caller's deadline. Such an end proves nothing about the peer."""
    left_seconds = deadline.remaining_seconds()
    return left_seconds is not None and left_seconds < MARGIN_SECONDS + LEAST_USEFUL_SECONDS
