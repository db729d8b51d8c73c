"""One attack, and the outcomes that one can have."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    REFUSED = "refused"
    FOUND = "found"
    NOT_PROMISED = "not promised"


@dataclass(frozen=True)
class Attack:
    """One attack. `names` are words of one problem, or of one line of `could not read`, for an attack that is found; of
    PostgreSQL's error for one that is refused, so that no other guard refuses it by chance.
    """

    what: str
    service: str
    sql: str
    outcome: Outcome
    names: tuple[str, ...] = ()
    by_owner: bool = False


def refused(service: str, what: str, sql: str, by: str) -> Attack:
    return Attack(what, service, sql, Outcome.REFUSED, (by,))


def found(service: str, what: str, sql: str, *names: str) -> Attack:
    return Attack(what, service, sql, Outcome.FOUND, names)


def found_of_owner(service: str, what: str, sql: str, *names: str) -> Attack:
    return Attack(what, service, sql, Outcome.FOUND, names, by_owner=True)


def not_promised(service: str, what: str, sql: str) -> Attack:
    return Attack(what, service, sql, Outcome.NOT_PROMISED)
