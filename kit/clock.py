"""The only module that reads the time.

Everything that needs "now" takes a `Clock` (or a `datetime`) as an argument, so that a test can put thirty
minutes between two lines. `tests/support/clock.py` holds the clock that stands still.
"""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Answers what time it is: an aware datetime in UTC."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> datetime:
        return datetime.now(UTC)


def monotonic_seconds() -> float:
    """Seconds that only grow: for durations and deadlines, never for dates."""
    return time.monotonic()
