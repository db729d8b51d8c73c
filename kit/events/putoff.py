"""The events that a consumer has postponed because of the database, and the errors for which it does so."""

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import exc

from kit.work.worker import Outage

MOST_EVENTS: Final = 10_000
"""Events beyond this number are postponed without being counted here."""


@dataclass
class _Wait:
    since: datetime
    seen_at: datetime


class PutOff:
    """The postponed events. Kept in memory, because only people read it: a restarted process counts from zero.

    forget_after  an event that did not come back in this time was handled by another process
    """

    def __init__(self, *, forget_after: timedelta) -> None:
        self._forget_after = forget_after
        self._waits: dict[uuid.UUID, _Wait] = {}

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, event_id: uuid.UUID, now: datetime) -> None:
        if event_id in self._waits or len(self._waits) < MOST_EVENTS:
            self._waits.setdefault(event_id, _Wait(now, now)).seen_at = now

    def remove(self, event_id: uuid.UUID) -> None:
        """Removes the event; does nothing when it was not postponed."""
        self._waits.pop(event_id, None)

    def longest_seconds(self, now: datetime) -> float:
        """Returns how long the first of them has waited; 0 without events."""
        waits = list(self._waits.items())
        for event_id, wait in waits:
            if now - wait.seen_at > self._forget_after:
                self.remove(event_id)
        return max(
            ((now - wait.since).total_seconds() for event_id, wait in waits if event_id in self._waits),
            default=0,
        )


def is_no_refusal(error: Exception) -> bool:
    """Returns whether the error comes from the database or another outage, not from the event. Such an error must never
    park an event that moves money.

    The handler refuses by its own exceptions and by the constraints that the event violates.
    """
    if isinstance(error, exc.DBAPIError):
        return not isinstance(error, exc.IntegrityError | exc.DataError)
    return isinstance(error, Outage)
