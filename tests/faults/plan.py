"""The faults of one round, all drawn from its seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from kit.base.services import SERVICES

PROCESSES: Final = (*SERVICES, "gateway worker", "console-desk", "console-dashboard", "postgres", "nats")
LINKS: Final = (*SERVICES, "postgres", "nats")
AWAY: Final = (*SERVICES, "postgres", "nats", "nats", "nats")
ROWS: Final = (
    ("invoices", "outbox", "INSERT"),
    ("invoices", "outbox", "UPDATE"),  # published, and not known to be: the relay's lost acknowledgement
    ("invoices", "deal_transitions", "INSERT"),
    ("invoices", "invoices", "UPDATE"),
    ("invoices", "line_payments", "INSERT"),
    ("bank", "lines", "INSERT"),
    ("bank", "line_matches", "INSERT"),
    ("withdrawals", "transfers", "INSERT"),
    ("withdrawals", "inbox", "INSERT"),
    ("webhooks", "events", "INSERT"),
    ("webhooks", "events", "UPDATE"),
    ("webhooks", "attempts", "INSERT"),
)


class Kind(StrEnum):
    KILL = "kill"
    """kill -9; whatever it had committed and not acknowledged is done twice or not at all."""
    PAUSE = "pause"
    """SIGSTOP, later SIGCONT: it believes that no time has passed."""
    AWAY = "away"
    """Stopped in good order and not there for seconds: what others do meanwhile must wait and not be forgotten."""
    CUT = "cut"
    """Every connection through a link is reset."""
    HOLD = "hold"
    """Nothing moves on a link, nothing is closed: what a firewall does that forgot us."""
    UNANSWERED = "unanswered"
    """What is asked over a link arrives and is done; what is answered gets lost, then its connections are reset."""
    ROW = "row"
    """PostgreSQL refuses the next row of a table, once."""

    LOSE = "lose"
    """NATS is stopped, everything that it has stored is deleted, and it starts with nothing.

    Seldom: everything is announced again after it, which would hide what the other faults made the relay forget.
    """


WEIGHTS: Final = {
    Kind.KILL: 10,
    Kind.PAUSE: 4,
    Kind.AWAY: 6,
    Kind.CUT: 6,
    Kind.HOLD: 4,
    Kind.UNANSWERED: 6,
    Kind.ROW: 8,
    Kind.LOSE: 1,
}
FREQUENT: Final = [kind for kind in Kind if kind is not Kind.LOSE]


@dataclass(frozen=True)
class Fault:
    """One thing that goes wrong: `wait_seconds` after the one before it, for `seconds` where it lasts.

    After a kill the stack gets at most `seconds` to be ready again before the next fault.
    """

    kind: Kind
    target: str
    wait_seconds: float
    seconds: float = 0.0

    def __str__(self) -> str:
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind} {self.target}{lasting}"


def plan(seed: int, *, seconds: float) -> Sequence[Fault]:
    """Faults for about so many seconds: at least one of each frequent kind, the rest by weight."""
    chance = random.Random(seed)
    faults: list[Fault] = []
    first = chance.sample(FREQUENT, len(FREQUENT))
    spent_seconds = 0.0
    while first or spent_seconds < seconds:
        kind = first.pop() if first else chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
        fault = _fault(chance, kind)
        faults.append(fault)
        spent_seconds += fault.wait_seconds + fault.seconds
    return faults


def _fault(chance: random.Random, kind: Kind) -> Fault:
    wait_seconds = chance.uniform(0.3, 2.0)
    if kind is Kind.ROW:
        return Fault(kind, " ".join(chance.choice(ROWS)), wait_seconds)
    if kind is Kind.LOSE:
        return Fault(kind, "jetstream", wait_seconds)
    if kind is Kind.AWAY:
        return Fault(kind, chance.choice(AWAY), wait_seconds, chance.uniform(1.0, 4.0))
    target = chance.choice(PROCESSES if kind in (Kind.KILL, Kind.PAUSE) else LINKS)
    seconds = {Kind.PAUSE: (0.5, 3.0), Kind.HOLD: (0.5, 3.0), Kind.UNANSWERED: (0.1, 1.0)}.get(kind)
    return Fault(kind, target, wait_seconds, chance.uniform(*seconds) if seconds else 0.0)
