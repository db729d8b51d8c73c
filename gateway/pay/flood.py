"""How often one payment's pages may be asked for: far more often than any customer would, and no more. Logos likewise.

Each worker counts for itself: the bound is there for the services behind us, which one loop of a script should not keep
busy, and for that a few times the limit is as good as the limit.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kit.clock import monotonic_seconds
from kit.errors import exhausted

REMEMBERED_MAX: Final = 20_000  # the longest unasked are forgotten, which forgives them
WINDOW_SECONDS: Final = 60


@dataclass(slots=True)
class _Bucket:
    """Requests that may still be made, and when that was counted. It fills up again evenly."""

    left: float  # fractions of a request: so many seconds of waiting
    at_seconds: float


class Flood:
    """`limit` requests at once, and again within a minute; 0: no limit."""

    def __init__(self, limit: int, *, now_seconds: Callable[[], float] = monotonic_seconds) -> None:
        self._limit = limit
        self._now_seconds = now_seconds
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def check(self, whose: str) -> None:
        """Counts a request of this payment's pages, or of this client. Raises RATE_LIMITED."""
        if not self._limit:
            return
        now_seconds = self._now_seconds()
        bucket = self._buckets.pop(whose, None) or _Bucket(self._limit, now_seconds)
        refilled = (now_seconds - bucket.at_seconds) * self._limit / WINDOW_SECONDS
        bucket.left = min(bucket.left + refilled, self._limit)
        bucket.at_seconds = now_seconds
        self._buckets[whose] = bucket
        if len(self._buckets) > REMEMBERED_MAX:
            self._buckets.popitem(last=False)
        if bucket.left < 1:
            raise exhausted(
                "RATE_LIMITED",
                "This was asked for too often",
                retry_after_seconds=str(-int(-WINDOW_SECONDS // self._limit)),
            )
        bucket.left -= 1
