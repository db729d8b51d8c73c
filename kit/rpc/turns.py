"""Turns: the calls of a kind that work now, and those that wait for their turn (`kit.rpc.slots`).

Owners take turns, for example merchants. The calls of one owner may have parts, for example its networks and their
sessions: these take turns too, and none of them takes all the places in which the owner's calls wait.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from operator import attrgetter
from typing import Final

from kit.observe import metrics
from kit.rpc import deadline, errors

REFUSED: Final = metrics.counter(
    "rpc_slots_refused",
    "Calls refused because their kind had no slot: too many of the kind (full), or of one owner (owner)",
    ["slots", "reason"],
)
FULL: Final = "full"
OWNER: Final = "owner"

OWNER_RETRY_SECONDS: Final = 5
"""When an owner whose call was refused may try again, as after a 503."""

Parts = tuple[str, ...]
"""A part of an owner: ("198.51.100.0/24", "a session"), or () for all of it."""


@dataclass(frozen=True, kw_only=True)
class Share:
    """The part of a kind that the calls of one owner may take.

    working       calls of one owner in work at the same time
    waiting       further calls of one owner that may wait for their turn; more are refused at once
    wait_seconds  longest a call waits for its turn; then it is refused
    in_all        calls of all owners in work at the same time; None: as many as the kind has threads
    last          whether the calls of an owner begin only while no call of others works or waits; owners for which this
                  holds do not wait for each other
    for_many      whether the present call is of a process, which calls for many owners: none of them has too many
    """

    working: int
    waiting: int = 0
    wait_seconds: float = 0
    in_all: int | None = None
    last: Callable[[str], bool] = lambda _owner: False
    for_many: Callable[[], bool] = lambda: False


def _too_many_of_owner(share: Share) -> errors.Refused:
    limit = share.working + share.waiting
    return errors.exhausted(
        "RATE_LIMITED",
        "Too many requests of this kind at the same time",
        limit=str(limit),
        retry_after_seconds=str(OWNER_RETRY_SECONDS),
    )


def count_from_the_start(name: str) -> None:
    """Creates the counters at 0, so that the first refusal is an increase."""
    for reason in (FULL, OWNER):
        REFUSED.labels(name, reason)


class Turns:
    """The turns of a kind. Owners that wait take turns in a circle, one call each, and so do the parts of an owner.

    When all places in which an owner's calls may wait are taken, the part with the most of them loses the newest to a
    part that has fewer.

    name     of the kind, in the metrics
    threads  calls of all owners in work at the same time, where the share does not limit them
    """

    def __init__(self, name: str, share: Share, *, threads: int) -> None:
        self._name = name
        self._share = share
        self._in_all = share.in_all or threads
        self._lock = threading.Lock()
        self.refused = 0
        self._working = 0
        self._working_of: Counter[str] = Counter()
        self._waiting: dict[str, _Line] = {}  # the owner whose turn is next comes first

    @contextmanager
    def turn(self, owner: str, parts: Parts = ()) -> Iterator[None]:
        """Runs the block as the work. Raises `Refused` when no turn comes: RATE_LIMITED when the owner's part has other
        calls that wait, or an owner without parts has some in work; DB_UNAVAILABLE when only others have, and for a
        process.
        """
        turn = _Turn()
        if not self._enter(owner, parts, turn):
            raise self._refusal(owner, parts, turn)
        try:
            yield
        finally:
            self._leave(owner)

    def _refusal(self, owner: str, parts: Parts, turn: _Turn) -> errors.Refused:
        with self._lock:
            self.refused += 1
            line = self._waiting.get(owner)
            waits = line is not None and line.count_of(parts) > 0
            has_others = turn.is_lost or waits or (not parts and self._working_of[owner] > 0)
        has_others = has_others and not self._share.for_many()
        REFUSED.labels(self._name, OWNER if has_others else FULL).inc()
        return _too_many_of_owner(self._share) if has_others else errors.database_unavailable()

    def _enter(self, owner: str, parts: Parts, turn: _Turn) -> bool:
        """Waits for the turn, as long as the share and the deadline allow; returns whether it came."""
        with self._lock:
            line = self._waiting.get(owner)
            if line is None and self._may_work(owner):
                self._begin(owner)
                return True
            if not self._has_place(line, parts):
                return False
            self._waiting.setdefault(owner, _Line()).add(parts, turn)
        left_seconds = deadline.remaining_seconds()
        most_seconds = self._share.wait_seconds
        has_ended = turn.wait(
            most_seconds if left_seconds is None else max(0.0, min(left_seconds, most_seconds))
        )
        with self._lock:
            if not has_ended and not turn.is_set():
                self._waiting[owner].remove(parts, turn)
                self._forget_if_empty(owner)
                return False
        return not turn.is_lost

    def _has_place(self, line: _Line | None, parts: Parts) -> bool:
        waiting = 0 if line is None else line.count
        return waiting < self._share.waiting or (line is not None and line.make_room(parts))

    def _leave(self, owner: str) -> None:
        with self._lock:
            self._working -= 1
            self._working_of[owner] -= 1
            if not self._working_of[owner]:
                del self._working_of[owner]
            self._give_turns()

    def _may_work(self, owner: str) -> bool:
        if self._share.last(owner) and not all(map(self._share.last, self._working_of)):
            return False
        return self._working < self._in_all and self._working_of[owner] < self._share.working

    def _begin(self, owner: str) -> None:
        self._working += 1
        self._working_of[owner] += 1

    def _give_turns(self) -> None:
        for owner in sorted(self._waiting, key=self._share.last):
            if self._may_work(owner):
                line = self._waiting.pop(owner)
                self._begin(owner)
                line.take().set()
                self._waiting[owner] = line  # to the end of the circle
                self._forget_if_empty(owner)

    def _forget_if_empty(self, owner: str) -> None:
        if not self._waiting[owner].count:
            del self._waiting[owner]


class _Turn(threading.Event):
    """The turn of a waiting call: set when it has come, or is lost to another part of the owner."""

    is_lost = False


class _Line:
    """The waiting calls of an owner or of a part of it. One line has either parts or turns."""

    def __init__(self) -> None:
        self.count = 0
        self._parts: dict[str, _Line] = {}  # the part whose turn is next comes first
        self._turns: deque[_Turn] = deque()

    def count_of(self, parts: Parts) -> int:
        if not parts:
            return self.count
        line = self._parts.get(parts[0])
        return 0 if line is None else line.count_of(parts[1:])

    def add(self, parts: Parts, turn: _Turn) -> None:
        self.count += 1
        if parts:
            self._parts.setdefault(parts[0], _Line()).add(parts[1:], turn)
        else:
            self._turns.append(turn)

    def remove(self, parts: Parts, turn: _Turn) -> None:
        self.count -= 1
        if parts:
            self._parts[parts[0]].remove(parts[1:], turn)
            self._forget_if_empty(parts[0])
        else:
            self._turns.remove(turn)

    def take(self) -> _Turn:
        """Returns the next turn, and moves its part to the end of the circle."""
        self.count -= 1
        if not self._parts:
            return self._turns.popleft()
        part = next(iter(self._parts))
        line = self._parts[part] = self._parts.pop(part)
        turn = line.take()
        self._forget_if_empty(part)
        return turn

    def make_room(self, parts: Parts) -> bool:
        """Takes the newest turn from the part with the most; returns False when `parts` would then have as many."""
        if not self._parts:
            return False
        own = self._parts.get(parts[0])
        most = max(self._parts.values(), key=_count)
        if most.count > (0 if own is None else own.count) + 1:
            self._lose()
            return True
        if own is None or not own.make_room(parts[1:]):
            return False
        self.count -= 1
        return True

    def _lose(self) -> None:
        self.count -= 1
        if not self._parts:
            turn = self._turns.pop()
            turn.is_lost = True
            turn.set()
            return
        part = max(self._parts, key=lambda each: self._parts[each].count)
        self._parts[part]._lose()
        self._forget_if_empty(part)

    def _forget_if_empty(self, part: str) -> None:
        if not self._parts[part].count:
            del self._parts[part]


_count = attrgetter("count")
