"""The rules of a post about a line that is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from services.bank.domain.lines import Line, Status

STEPS: Final[Mapping[Status, frozenset[Status]]] = {
    Status.PENDING: frozenset({Status.BOOKED, Status.REVERSED}),
    Status.BOOKED: frozenset({Status.REVERSED}),
    Status.REVERSED: frozenset(),
}


class Outcome(StrEnum):
    CREATED = "created"
    UPDATED = "updated"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class Change:
    """`why` is the sentence of a conflict, else empty."""

    outcome: Outcome
    why: str = ""


def change(known: Line, posted: Line) -> Change:
    """Returns what the post of a known line changes. Texts may differ: those of the booked line count."""
    for name in ("account", "direction", "amount", "currency"):
        before, after = getattr(known, name), getattr(posted, name)
        if before != after:
            return Change(Outcome.CONFLICT, f"The {name} of this source_id is {before}, not {after}")
    if posted.status is known.status:
        return Change(Outcome.DUPLICATE)
    if posted.status in STEPS[known.status]:
        return Change(Outcome.UPDATED)
    return Change(Outcome.CONFLICT, f"The line is {known.status}: it can't become {posted.status}")
