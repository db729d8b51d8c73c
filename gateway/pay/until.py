"""Time limits, as the page shows them."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class Until:
    """A time limit, seen at the time `now`; the minutes left are the seconds left, rounded up."""

    at: datetime
    now: datetime

    @property
    def iso(self) -> str:
        return self.at.isoformat(timespec="seconds")

    @property
    def seconds_left(self) -> int:
        return max(-int(-(self.at - self.now).total_seconds() // 1), 0)

    @property
    def minutes_left(self) -> int:
        return -(-self.seconds_left // 60)
