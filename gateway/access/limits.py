"""The limit of a key's requests per minute, counted by each worker process for itself, and its headers.

Windows are the minutes of the clock. A key never gets less than its limit, and at most that of each worker which its
connections reach (docs/decisions/0011). A request costs a look-up in a dictionary and no call. One with a large body
counts as several, because its body takes as long as several.

Headers: draft-ietf-httpapi-ratelimit-headers-10, `RateLimit-Policy` and `RateLimit`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from kit.base.clock import Clock
from kit.rpc.errors import Refused, exhausted

WINDOW_SECONDS: Final = 60
POLICY: Final = "key"
BYTES_OF_ONE_REQUEST: Final = 4096  # usual orders have a few hundred


@dataclass(frozen=True, slots=True)
class Allowance:
    """The answer of the limit to one request.

    granted    whether the request was within the limit; if not, it is not counted
    remaining  requests that are left until the window ends
    """

    granted: bool
    limit: int
    remaining: int
    reset_seconds: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Policy": f'"{POLICY}";q={self.limit};w={WINDOW_SECONDS}',
            "RateLimit": f'"{POLICY}";r={self.remaining};t={self.reset_seconds}',
        }

    def refusal(self) -> Refused:
        """Returns RATE_LIMITED for a request that was not granted."""
        return exhausted(
            "RATE_LIMITED",
            f"More than {self.limit} requests with this key within {WINDOW_SECONDS} seconds",
            limit=str(self.limit),
            window_seconds=str(WINDOW_SECONDS),
            retry_after_seconds=str(self.reset_seconds),
        )


class RateLimit:
    """The counts of one worker, for the current window only."""

    def __init__(self, limit: int, *, clock: Clock) -> None:
        self.limit = limit
        self._clock = clock
        self._window = -1
        self._taken = Counter[str]()

    def take(self, key_id: str) -> Allowance:
        """Counts one request of this key, if the limit allows it."""
        reset_seconds = self._reset_seconds()
        granted = self._taken[key_id] < self.limit
        if granted:
            self._taken[key_id] += 1
        return self._allowance(key_id, reset_seconds, granted=granted)

    def count_body(self, key_id: str, size: int) -> Allowance:
        """Counts the rest of a granted request. It is not refused: its body is read already."""
        reset_seconds = self._reset_seconds()
        self._taken[key_id] += max(size - 1, 0) // BYTES_OF_ONE_REQUEST
        return self._allowance(key_id, reset_seconds, granted=True)

    def _reset_seconds(self) -> int:
        """Returns the seconds until the window ends, and begins the current one."""
        window, gone_seconds = divmod(int(self._clock.now().timestamp()), WINDOW_SECONDS)
        if window != self._window:
            self._window = window
            self._taken.clear()
        return WINDOW_SECONDS - gone_seconds

    def _allowance(self, key_id: str, reset_seconds: int, *, granted: bool) -> Allowance:
        return Allowance(granted, self.limit, max(self.limit - self._taken[key_id], 0), reset_seconds)
