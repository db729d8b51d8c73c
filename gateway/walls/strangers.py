"""How often one client network may ask for keys and payments that do not exist.

A question about a name that has not been answered before takes a token before it is asked, so a flood of questions at
once is bounded too. The token comes back unless the answer is that there is no such key or payment: only strangers
pay. What has been found once is asked for freely from then on, so a merchant or customer whose network is shared with
a stranger goes on; only a name that is new to this worker has to wait until the network has a token again.

Names are remembered by Python's keyed hash, not as they are: keys are secrets.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from gateway.walls import turned_away
from gateway.walls.buckets import Buckets
from kit.errors import Refused

KNOWN_MAX: Final = 50_000
UNKNOWN: Final = frozenset({"API_KEY_INVALID", "INVOICE_NOT_FOUND"})
# A client that is refused waits so long for the answer. A script that asks again at once is slowed down by it.
REFUSAL_SECONDS: Final = 1.0
# Beyond so many that wait, answers come at once: each of them keeps a connection.
WAITING_MAX: Final = 500

T = TypeVar("T")


class Strangers:
    """The tokens of all networks in one worker, and the names it has found.

    limit  names that do not exist, per network: so many at once, and again within a minute; 0: no limit
    """

    def __init__(self, limit: int) -> None:
        self._buckets = Buckets(limit)
        self._known: OrderedDict[int, None] = OrderedDict()
        self._waiting = 0

    async def ask(self, network: str, name: str, question: Callable[[], Awaitable[T]]) -> T:
        """The answer to a question about a key or payment. Raises what it raises, and RATE_LIMITED."""
        known = hash(name)
        is_new = known not in self._known
        if is_new and not self._buckets.take(network):
            await self._refuse()
        pays = False
        try:
            answer = await question()
        except Refused as refused:
            pays = refused.reason in UNKNOWN
            if pays:
                self._known.pop(known, None)
            raise
        finally:
            if is_new and not pays:
                self._buckets.give_back(network)
        self._remember(known)
        return answer

    def _remember(self, known: int) -> None:
        self._known[known] = None
        self._known.move_to_end(known)
        if len(self._known) > KNOWN_MAX:
            self._known.popitem(last=False)

    async def _refuse(self) -> None:
        turned_away.count("strangers")
        if self._waiting < WAITING_MAX:
            self._waiting += 1
            try:
                await asyncio.sleep(REFUSAL_SECONDS)
            finally:
                self._waiting -= 1
        raise self._buckets.refusal("Too many unknown keys or payments were asked for from your network")
