"""The only module that reads the time.

Code that needs the time takes a `Clock` (or a `datetime`) as an argument, so that a test can move it. The test's clock
is in `tests/support/clock.py`.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """A source of the time: returns an aware datetime in UTC."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def monotonic_seconds() -> float:
    """Returns seconds of a clock that never goes back: for durations and deadlines, never for dates."""
    return time.monotonic()
