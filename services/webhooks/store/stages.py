"""The values that the stages of a delivery pass to each other: rooms and claims, shipments, outcomes, records."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from services.webhooks.domain import EventStatus, EventTerms, Trigger, is_success


class LaneKey(NamedTuple):
    """The name of a lane: a merchant and a destination. Merchants that share a host have separate lanes: one's endpoint
    may hang while the other's answers.
    """

    merchant_id: UUID
    destination: str


@dataclass(frozen=True)
class Rooms:
    """How many more events may be claimed now: in `total`, per lane and per merchant. They are in order of turn."""

    total: int
    lanes: dict[LaneKey, int]
    merchants: dict[UUID, int]

    def by_merchant(self) -> dict[UUID, dict[LaneKey, int]]:
        by_merchant: dict[UUID, dict[LaneKey, int]] = {id: {} for id in self.merchants}
        for key, room in self.lanes.items():
            by_merchant[key.merchant_id][key] = room
        return by_merchant


Claim = tuple[int, UUID]
"""An event and the token of its lease; a whole batch has one token."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claimed:
    """An event that this process may send until `lease_until`, as claimed; no other process changes it meanwhile."""

    event_id: int
    lease_token: UUID
    lease_until: datetime
    trigger: Trigger
    terms: EventTerms
    status: EventStatus
    next_retry_at: datetime | None
    auto_attempts: int
    # Empty when the event has no seal.
    seal: str
    # These two name the request that led to the event; they are empty when it is not known.
    request_id: str = ""
    traceparent: str = ""

    @property
    def claim(self) -> Claim:
        return self.event_id, self.lease_token


def lane_of(claimed: Claimed) -> LaneKey:
    return LaneKey(claimed.terms.merchant_id, claimed.terms.destination)


@dataclass(frozen=True, slots=True)
class Shipment:
    """A claimed event with the secret that signs it now; None when the merchant has no active key."""

    claimed: Claimed
    secret: str | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The receiver's answer. Header names and values and the body are cut to the size that the history keeps."""

    http_status: int
    headers: Mapping[str, str]
    body: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """An attempt that ended: with an answer or an error text, or both, but never neither.

    duration_ms  until the status line; without an answer, until the end
    held_ms      until the end: a receiver may send the rest of its answer slowly
    """

    claimed: Claimed
    started_at: datetime
    ended_at: datetime
    duration_ms: int
    held_ms: int
    answer: Answer | None
    error: str | None
    # The context of the attempt's span; empty when tracing is off.
    traceparent: str = ""

    @property
    def http_status(self) -> int | None:
        return None if self.answer is None else self.answer.http_status

    @property
    def succeeded(self) -> bool:
        return is_success(self.http_status)


@dataclass(frozen=True, slots=True)
class Recorded:
    """An outcome that was written: its attempt, and the time of the event's next automatic attempt."""

    event_id: int
    lease_token: UUID
    attempt_id: int
    next_retry_at: datetime | None

    @property
    def claim(self) -> Claim:
        return self.event_id, self.lease_token
