"""Bounds on a network's questions about names that do not exist: keys, payments, sessions.

A question about a name that has not been answered before takes a token before it is sent, so many questions at once
are bounded too. The token comes back unless the answer is that there is no such name, or the question found no place:
only strangers pay, and networks that send more questions than there is room for. A name that was found once needs no
token from then on, so a client who shares a network with a stranger goes on; only a name that is new to this worker has
to wait until the network has a token again.

An attacker may have hundreds of networks, each with its tokens. So few questions about new names are under way at a
time, networks take turns, and questions about known names wait for none of them.

A name that was just refused is refused again without a question and without a token: a server that goes on with a
deactivated key takes nothing from its network. This is for names that stay missing: ids, keys and cookies are random,
and what has ended stays so.

Names are stored by a keyed hash, not as they are: keys and cookies are secrets.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeVar

from kit.base.clock import monotonic_seconds
from kit.rpc.errors import Refused, database_unavailable
from kit.web.walls import turned_away
from kit.web.walls.buckets import Buckets
from kit.web.walls.places import Bound, NoPlace, Places

KNOWN_MAX: Final = 50_000
MISSING_MAX: Final = 10_000
MISSING_SECONDS: Final = 10.0
WAITING: Final = 1000
WAITING_OF_ONE: Final = 100
NEW_SECONDS: Final = 4.0
QUESTION_SECONDS: Final = 0.5
"""The part of a request's time that this wait leaves to the question."""
# A client without tokens waits this long for its refusal.
REFUSAL_SECONDS: Final = 1.0
# Refusals are sent one after the other, and so are answers that there is no such name: scripts that ask again at once,
# from any number of networks, take at most a fifth of this worker's time. Networks take turns, so an answer waits for
# one answer to each other network, and requests with names that exist wait for none.
PACE_SECONDS: Final = 0.01
# Above this number of waiting answers, and after this time, they are sent at once: each holds a connection.
WAITING_MAX: Final = 1000
PACED_SECONDS: Final = 10.0

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of names.

    at_a_time  questions about new names that are under way, of all networks together
    missing    the reason that says that there is no such name
    denied_again_seconds  how long that answer is given again without a question; 0: the name may exist the next time
    """

    at_a_time: int
    missing: str
    denied_again_seconds: float = MISSING_SECONDS


class Strangers:
    """The tokens of all networks in one worker, and the names it has found.

    limit    names that do not exist, per network: at once, and again within a minute; 0: no limit
    message  for a network without a token
    """

    def __init__(
        self,
        limit: int,
        kinds: Mapping[str, Kind],
        *,
        message: str,
        now_seconds: Callable[[], float] = monotonic_seconds,
    ) -> None:
        self._kinds = kinds
        self._message = message
        self._buckets = Buckets(limit, now_seconds=now_seconds)
        self._now_seconds = now_seconds
        self._secret = secrets.token_bytes(16)
        self._known: OrderedDict[bytes, None] = OrderedDict()
        self._missing: OrderedDict[bytes, tuple[float, Refused]] = OrderedDict()  # and until which second
        self._places = {
            name: Places(
                Bound(running=kind.at_a_time, waiting=WAITING),
                of_one=Bound(running=kind.at_a_time, waiting=WAITING_OF_ONE),
                seconds=NEW_SECONDS,
                kept_seconds=QUESTION_SECONDS,
            )
            for name, kind in kinds.items()
        }
        self._pauses = Places(Bound(running=WAITING_MAX, waiting=0), seconds=0)
        self._refusals = _Spacing(now_seconds)
        self._denials = _Spacing(now_seconds)
        turned_away.begin("strangers")

    async def ask(self, kind: str, network: str, name: str, question: Callable[[], Awaitable[T]]) -> T:
        """Returns the answer to a question about a name. Raises the question's errors, RATE_LIMITED, and
        DB_UNAVAILABLE when there are too many questions about new names.
        """
        known = self._hash(kind, name)
        await self._deny_again(network, known)
        if known in self._known:
            return await self._answer(kind, known, question)
        await self.pay(network)
        missing: Refused | None = None
        pays = False
        try:
            async with self._places[kind].place(network):
                return await self._answer(kind, known, question)
        except NoPlace as full:
            pays = True
            turned_away.count("strangers", f"{kind} at a time")
            if full.of_one:
                await self._refuse(network)
            raise database_unavailable() from None
        except Refused as refused:
            if refused.reason != self._kinds[kind].missing:
                raise
            pays, missing = True, _copy(refused)
        finally:
            if not pays:
                self._buckets.give_back(network)
        await self._denials.turn(network)  # outside the handler: the refusal keeps its frames in memory
        raise missing

    async def pay(self, network: str) -> None:
        """Takes a token of the network. Raises RATE_LIMITED when it has none."""
        if not self._buckets.take(network):
            turned_away.count("strangers")
            await self._refuse(network)

    async def _answer(self, kind: str, known: bytes, question: Callable[[], Awaitable[T]]) -> T:
        """Sends the question, and stores whether the name exists."""
        try:
            answer = await question()
        except Refused as refused:
            if refused.reason == self._kinds[kind].missing:
                self._known.pop(known, None)
                until_seconds = self._now_seconds() + self._kinds[kind].denied_again_seconds
                _put(self._missing, known, (until_seconds, _copy(refused)), MISSING_MAX)
            raise
        _put(self._known, known, None, KNOWN_MAX)
        return answer

    def learn(self, kind: str, name: str) -> None:
        """Stores a name that exists: this worker has just made it."""
        _put(self._known, self._hash(kind, name), None, KNOWN_MAX)

    def knows(self, kind: str, name: str) -> bool:
        """Returns whether the name was found before."""
        return self._hash(kind, name) in self._known

    def _hash(self, kind: str, name: str) -> bytes:
        return blake2b(f"{kind} {name}".encode(), digest_size=16, key=self._secret).digest()

    async def _deny_again(self, network: str, name: bytes) -> None:
        until_seconds, refused = self._missing.get(name, (0, None))
        if refused is not None and self._now_seconds() < until_seconds:
            await self._denials.turn(network)
            raise _copy(refused)

    async def _refuse(self, network: str) -> None:
        """Raises RATE_LIMITED, after a pause."""
        with suppress(NoPlace):
            async with self._pauses.place(network):
                await asyncio.sleep(REFUSAL_SECONDS)
                await self._refusals.turn(network)
        raise self._buckets.refusal(self._message)


class _Spacing:
    """Delays answers so that they leave one after the other, PACE_SECONDS apart. Networks take turns."""

    def __init__(self, now_seconds: Callable[[], float]) -> None:
        self._now_seconds = now_seconds
        self._next_seconds = 0.0
        self._places = Places(Bound(running=1, waiting=WAITING_MAX), seconds=PACED_SECONDS)

    async def turn(self, network: str) -> None:
        """Waits until it is this network's turn. Returns sooner when too many wait, or after the longest wait."""
        with suppress(NoPlace):
            async with self._places.place(network):
                await asyncio.sleep(max(0, self._next_seconds - self._now_seconds()))
                self._next_seconds = self._now_seconds() + PACE_SECONDS


def _copy(refused: Refused) -> Refused:
    """Returns the same refusal without its traceback, which would keep the frames of its request in memory (43 KB
    each).
    """
    return Refused(refused.reason, refused.message, code=refused.code, metadata=refused.metadata)


def _put(remembered: OrderedDict[bytes, V], name: bytes, value: V, most: int) -> None:
    remembered[name] = value
    remembered.move_to_end(name)
    if len(remembered) > most:
        remembered.popitem(last=False)
