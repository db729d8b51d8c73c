"""Token buckets: a number of requests within a minute, and at once as many or fewer.

Each worker counts for itself, so a client may get the limit once per worker. That still protects the services.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from kit.base.clock import monotonic_seconds
from kit.rpc.errors import Refused, exhausted

REMEMBERED_MAX: Final = 20_000  # the longest unused are dropped, which fills them
WINDOW_SECONDS: Final = 60


@dataclass(slots=True)
class _Bucket:
    """The requests that are left, and the time of that count. It fills up again evenly."""

    left: float  # a fraction of a request is a time to wait
    at_seconds: float


class Buckets:
    """One bucket for each name.

    limit    tokens that come back within a minute; 0: no limit
    at_once  tokens in a full bucket; None: `limit`
    """

    def __init__(
        self, limit: int, *, at_once: int | None = None, now_seconds: Callable[[], float] = monotonic_seconds
    ) -> None:
        self._limit = limit
        self._at_once = limit if at_once is None else at_once
        self._now_seconds = now_seconds
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, whose: str) -> bool:
        """Takes one token; false when there is none."""
        if not self._limit:
            return True
        bucket = self._filled(whose)
        if bucket.left < 1:
            return False
        bucket.left -= 1
        return True

    def give_back(self, whose: str) -> None:
        """Puts back one token that was taken."""
        if self._limit:
            bucket = self._filled(whose)
            bucket.left = min(bucket.left + 1, self._at_once)

    def refusal(self, message: str = "This was asked for too often", **metadata: str) -> Refused:
        """Returns RATE_LIMITED for a request without a token."""
        retry_after_seconds = str(-int(-WINDOW_SECONDS // self._limit))
        return exhausted("RATE_LIMITED", message, retry_after_seconds=retry_after_seconds, **metadata)

    def _filled(self, whose: str) -> _Bucket:
        now_seconds = self._now_seconds()
        bucket = self._buckets.pop(whose, None) or _Bucket(self._at_once, now_seconds)
        refilled = (now_seconds - bucket.at_seconds) * self._limit / WINDOW_SECONDS
        bucket.left = min(bucket.left + refilled, self._at_once)
        bucket.at_seconds = now_seconds
        self._buckets[whose] = bucket
        if len(self._buckets) > REMEMBERED_MAX:
            self._buckets.popitem(last=False)
        return bucket
