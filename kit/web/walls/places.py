"""A bounded number of places, and turns for the calls that wait: one owner after the other.

An owner is a client with a key, or a client's network. However many calls one owner has, the first call of another
waits for at most one call of each owner. When too many wait, the owner with the most waiting calls loses one, to make
room.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from kit.rpc import deadline

_Turn = asyncio.Future[bool]  # of one waiting call; the result is whether it has a place


@dataclass(frozen=True, kw_only=True)
class Bound:
    """running  calls at a time
    waiting  calls that wait for their turn; more are refused at once
    """

    running: int
    waiting: int


class NoPlace(Exception):
    """There was no place in time. `of_one`: because of the calls of this owner alone."""

    def __init__(self, *, of_one: bool) -> None:
        super().__init__(of_one)
        self.of_one = of_one


class Places:
    """in_all   bound of all owners together
    of_one   bound of each owner; None: that of all
    seconds  longest wait for a turn
    kept_seconds  the part of a request's time that the wait leaves to what comes after it; None: the wait does not end
                  with the request
    """

    def __init__(
        self, in_all: Bound, *, of_one: Bound | None = None, seconds: float, kept_seconds: float | None = None
    ) -> None:
        self._in_all = in_all
        self._of_one = of_one or in_all
        self._seconds = seconds
        self._kept_seconds = kept_seconds
        self._running: Counter[str] = Counter()
        self._running_in_all = 0
        self._waiting: OrderedDict[str, deque[_Turn]] = OrderedDict()  # the next owner first
        self._waiting_in_all = 0

    def place(self, owner: str) -> AbstractAsyncContextManager[None]:
        """Holds a place during the block. Raises NoPlace."""
        return _Place(self, owner)

    def __len__(self) -> int:
        """The number of owners that have calls under way or waiting."""
        return len(self._running.keys() | self._waiting.keys())

    def _is_free_for(self, owner: str) -> bool:
        return self._running_in_all < self._in_all.running and self._running[owner] < self._of_one.running

    async def enter(self, owner: str) -> None:
        if self._is_free_for(owner):  # then no waiting owner could take it
            self._take(owner)
        else:
            await self._turn(owner)

    def _take(self, owner: str) -> None:
        self._running[owner] += 1
        self._running_in_all += 1

    def leave(self, owner: str) -> None:
        self._running_in_all -= 1
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
        self._give_place()

    def _give_place(self) -> None:
        """Gives the free place to the next owner that may have it."""
        while (owner := next((each for each in self._waiting if self._is_free_for(each)), None)) is not None:
            turn = self._waiting[owner][0]
            self._forget(owner, turn)
            if turn.done():  # its wait has just ended, and its task has not yet run
                continue
            if owner in self._waiting:
                self._waiting.move_to_end(owner)
            self._take(owner)
            turn.set_result(True)
            return

    async def _turn(self, owner: str) -> None:
        """Waits until the owner's call is given a place."""
        if self._waiting_in_all >= self._in_all.waiting:
            self._make_room_for(owner)
        if self._is_full_for(owner):
            raise self._none_for(owner)
        turn: _Turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(turn)
        self._waiting_in_all += 1
        try:
            async with asyncio.timeout(self._most_seconds()):
                has_place = await turn
        except BaseException as ended:
            # The place came at the same moment: another may have it.
            if turn.done() and not turn.cancelled() and turn.result():
                self.leave(owner)
            else:
                self._forget(owner, turn)
            if isinstance(ended, TimeoutError):
                raise self._none_for(owner) from None
            raise
        if not has_place:
            raise NoPlace(of_one=True)

    def _most_seconds(self) -> float:
        left_seconds = None if self._kept_seconds is None else deadline.remaining_seconds()
        if left_seconds is None or self._kept_seconds is None:
            return self._seconds
        return min(self._seconds, left_seconds - self._kept_seconds)

    def _is_full_for(self, owner: str) -> bool:
        return (
            len(self._waiting.get(owner, ())) >= self._of_one.waiting
            or self._waiting_in_all >= self._in_all.waiting
        )

    def _make_room_for(self, owner: str) -> None:
        """Ends the newest wait of the owner with the most waiting calls, unless `owner` would then have as many."""
        most = max(self._waiting, key=lambda each: len(self._waiting[each]), default=owner)
        if len(self._waiting.get(most, ())) > len(self._waiting.get(owner, ())) + 1:
            turn = self._waiting[most][-1]
            self._forget(most, turn)
            if not turn.done():
                turn.set_result(False)

    def _forget(self, owner: str, turn: _Turn) -> None:
        """Removes the turn, if it is still waiting."""
        if turn not in self._waiting.get(owner, ()):
            return
        self._waiting_in_all -= 1
        self._waiting[owner].remove(turn)
        if not self._waiting[owner]:
            del self._waiting[owner]

    def _none_for(self, owner: str) -> NoPlace:
        queue = len(self._waiting.get(owner, ()))
        is_own = self._running[owner] >= self._of_one.running or queue >= self._of_one.waiting
        return NoPlace(of_one=self._of_one is not self._in_all and is_own)


class _Place(AbstractAsyncContextManager[None]):
    """A class, because every call of every request holds a place, and a generator in its stead takes twice as long."""

    __slots__ = ("_owner", "_places")

    def __init__(self, places: Places, owner: str) -> None:
        self._places = places
        self._owner = owner

    async def __aenter__(self) -> None:
        await self._places.enter(self._owner)

    async def __aexit__(self, *_: object) -> None:
        self._places.leave(self._owner)
