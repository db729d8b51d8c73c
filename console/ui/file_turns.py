"""The files that one worker sends: few of each person, and their calls take turns.

A file of a long list is thousands of calls, one after the other. Without turns the files of a few people would take the
places of the pages and decisions of all others in the services.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from kit.rpc.errors import database_unavailable, exhausted
from kit.web.exchange import allow
from kit.web.walls.places import Bound, NoPlace, Places

FILES_OF_ONE: Final = 2
FILES_IN_ALL: Final = 40
CALLS_AT_A_TIME: Final = 1
TURN_SECONDS: Final = 120.0
"""Longest wait of a file for its next call."""
CALL_SECONDS: Final = 15.0
"""Time of one call of a file: up to a thousand rows, on a busy database."""


class FileTurns:
    """The bounds of one worker's files."""

    def __init__(self) -> None:
        self._sending: Counter[str] = Counter()
        every_file = Bound(running=CALLS_AT_A_TIME, waiting=FILES_IN_ALL)
        self._calls = Places(every_file, seconds=TURN_SECONDS)

    @contextmanager
    def sending(self, person: str) -> Iterator[None]:
        """Counts a file of the person. Raises RATE_LIMITED when the person, or all people, have as many as they may."""
        if self._sending[person] >= FILES_OF_ONE or self._sending.total() >= FILES_IN_ALL:
            raise exhausted(
                "RATE_LIMITED", "Files that are being sent must end first", files=str(FILES_OF_ONE)
            )
        self._sending[person] += 1
        try:
            yield
        finally:
            self._sending[person] -= 1
            self._sending += Counter()  # forgets people without a file

    @asynccontextmanager
    async def call(self, person: str) -> AsyncIterator[None]:
        """Holds a turn for one call. Raises DB_UNAVAILABLE when none came in time."""
        try:
            async with self._calls.place(person):
                allow(CALL_SECONDS)
                yield
        except NoPlace:
            raise database_unavailable() from None
