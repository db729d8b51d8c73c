"""Requests for payments that exist: the pace of one network, and turns of all networks for the pages.

A network may have a telephone company's customers behind it, so a request above the pace waits for its turn. It is
refused when many of its network already wait. Of the pages, few are read at a time; when many networks wait, the one
with the most waiting requests makes room.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from gateway.walls.calls import CALL_SECONDS
from kit.base.clock import monotonic_seconds
from kit.rpc.errors import Refused, database_unavailable, exhausted
from kit.web.walls import turned_away
from kit.web.walls.buckets import WINDOW_SECONDS, Buckets
from kit.web.walls.places import Bound, NoPlace, Places

AT_ONCE_SECONDS: Final = 1
"""A network that was quiet may send the requests of this time at once."""

WAIT_SECONDS: Final = 3.0
PAGE_WAIT_SECONDS: Final = 4.0
WAITING_OF_ONE: Final = 100
WAITING_MAX: Final = 1000
RETRY_SECONDS: Final = 5
PAGES: Final = Bound(running=4, waiting=400)
"""Pages that are read at a time: more would only wait in the invoices service, and delay other requests here."""


class Pace:
    """The pace of all networks in one worker.

    per_minute  requests of one network; 0: no limit
    """

    def __init__(self, per_minute: int, *, now_seconds: Callable[[], float] = monotonic_seconds) -> None:
        at_once = max(1, per_minute * AT_ONCE_SECONDS // WINDOW_SECONDS)
        self._tokens = Buckets(per_minute, at_once=at_once, now_seconds=now_seconds)
        self._interval_seconds = WINDOW_SECONDS / max(1, per_minute)
        one = Bound(running=1, waiting=WAITING_OF_ONE)
        self._turns = Places(
            Bound(running=WAITING_MAX, waiting=WAITING_MAX), of_one=one, seconds=WAIT_SECONDS
        )
        self._pages = Places(
            PAGES,
            of_one=Bound(running=PAGES.running, waiting=WAITING_OF_ONE),
            seconds=PAGE_WAIT_SECONDS,
            kept_seconds=CALL_SECONDS,
        )

    async def turn(self, network: str) -> None:
        """Returns at the turn of a request of this network. Raises RATE_LIMITED when too many wait."""
        try:
            async with asyncio.timeout(WAIT_SECONDS), self._turns.place(network):
                if not self._tokens.take(network):
                    await asyncio.sleep(self._interval_seconds)
                    self._tokens.take(network)  # the one that came back meanwhile
        except (NoPlace, TimeoutError):
            raise _refusal() from None

    @asynccontextmanager
    async def page(self, network: str) -> AsyncIterator[None]:
        """Holds a place to read a page. Raises RATE_LIMITED when too many of this network wait, DB_UNAVAILABLE when all
        together do.
        """
        async with AsyncExitStack() as place:
            try:
                await place.enter_async_context(self._pages.place(network))
            except NoPlace as full:
                if full.of_one:
                    raise _refusal() from None
                turned_away.count("page", "all")
                raise database_unavailable() from None
            yield


def _refusal() -> Refused:
    turned_away.count("page", "network")
    return exhausted(
        "RATE_LIMITED",
        "Too many requests for payments came from your network",
        retry_after_seconds=str(RETRY_SECONDS),
    )


for _kind in ("network", "all"):
    turned_away.begin("page", _kind)
