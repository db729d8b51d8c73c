"""A clock that moves only when it is told to."""

from datetime import UTC, datetime, timedelta

START = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)


class ManualClock:
    """A `kit.base.clock.Clock` for tests: `now()` answers the same until `advance` or `set`."""

    def __init__(self, now: datetime = START) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def advance(
        self, *, seconds: float = 0, minutes: float = 0, hours: float = 0, days: float = 0
    ) -> datetime:
        self._now += timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        return self._now

    def set(self, now: datetime) -> None:
        if now.tzinfo is None:
            raise ValueError("a clock answers aware datetimes")
        self._now = now
