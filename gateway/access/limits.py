"""The limit of a key's requests per minute, counted by each worker process for itself, and its headers.

Windows are the minutes of the clock. A key never gets less than its limit, and at most that of each worker which its
connections reach (docs/decisions/0015). A request costs a look-up in a dictionary and no call.

Headers: draft-ietf-httpapi-ratelimit-headers-10, `RateLimit-Policy` and `RateLimit`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kit.base.clock import Clock
from kit.rpc.errors import Refused, exhausted

WINDOW_SECONDS: Final = 60
POLICY: Final = "key"


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
        self._taken: dict[str, int] = {}

    def take(self, key_id: str) -> Allowance:
        """Counts one request of this key, if the limit allows it."""
        window, gone_seconds = divmod(int(self._clock.now().timestamp()), WINDOW_SECONDS)
        if window != self._window:
            self._window = window
            self._taken.clear()
        taken = self._taken.get(key_id, 0)
        left = self.limit - taken
        if left > 0:
            self._taken[key_id] = taken + 1
        return Allowance(left > 0, self.limit, max(left - 1, 0), WINDOW_SECONDS - gone_seconds)
