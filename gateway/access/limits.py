"""The limit of a key's requests per minute, over all workers of all replicas, and its headers.

Windows are the minutes of the clock. Each worker counts its own requests and sends its counts to the others several
times a second; so a request costs a few dictionary look-ups and no call. The limit may be exceeded by the requests that
other workers have counted since they last sent. Counts are sent whole, never as differences: the next hint makes up for
a lost one. While NATS is away each worker counts alone.

Headers: draft-ietf-httpapi-ratelimit-headers-10, `RateLimit-Policy` and `RateLimit`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count, islice
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from gateway.access.hints import Hints
from kit.base.clock import Clock
from kit.base.ids import new_id
from kit.observe.log import get_logger
from kit.rpc.errors import Refused, exhausted
from kit.work.tasks import supervised

WINDOW_SECONDS: Final = 60
POLICY: Final = "key"

SUBJECT: Final = "fiatgate-hint.requests-counted"
TELL_SECONDS: Final = 0.2
# All counts again, for workers that have just started and for lost hints; otherwise only changed ones.
TELL_ALL_EVERY: Final = 10
KEYS_PER_HINT: Final = (
    100  # at most 78 bytes each; receivers drop a hint above kit.events.bus.messages.HINT_MOST_BYTES
)
WORKERS_MAX: Final = 1000
LEARNED_MAX: Final = (
    500_000  # counts of other workers in one window, so that many hints do not fill the memory
)

_log = get_logger()

_Name = Annotated[str, StringConstraints(min_length=1, max_length=64)]


class _News(BaseModel):
    """The counts that a worker sends. Only gateways may publish them (deploy/nats_rights.py), and they are read as if
    anyone could.
    """

    model_config = ConfigDict(strict=True, frozen=True)

    worker: _Name
    window: int
    counts: Annotated[dict[_Name, Annotated[int, Field(ge=0)]], Field(max_length=KEYS_PER_HINT)]


@dataclass(frozen=True, slots=True)
class Allowance:
    """The answer of the limit to one request.

    granted    whether the request was within the limit; if not, it is not counted
    remaining  requests that are left until the window ends
    """

    granted: bool
    limit: int
    remaining: int
    reset_seconds: int

    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Policy": f'"{POLICY}";q={self.limit};w={WINDOW_SECONDS}',
            "RateLimit": f'"{POLICY}";r={self.remaining};t={self.reset_seconds}',
        }

    def refusal(self) -> Refused:
        """RATE_LIMITED, for a request that was not granted."""
        return exhausted(
            "RATE_LIMITED",
            f"More than {self.limit} requests with this key within {WINDOW_SECONDS} seconds",
            limit=str(self.limit),
            window_seconds=str(WINDOW_SECONDS),
            retry_after_seconds=str(self.reset_seconds),
        )


class RateLimit:
    """The counts of one worker and those received from the others, for the current window only."""

    def __init__(self, limit: int, *, clock: Clock) -> None:
        self.limit = limit
        self._clock = clock
        self._worker = new_id().hex
        self._window = -1
        self._begin(0)

    def take(self, key_id: str) -> Allowance:
        """Counts one request of this key, if the limit allows it."""
        reset_seconds = self._turn()
        own = self._own.get(key_id, 0)
        left = self.limit - own - self._foreign.get(key_id, 0)
        if left > 0:
            self._own[key_id] = own + 1
            self._untold.add(key_id)
        return Allowance(left > 0, self.limit, max(left - 1, 0), reset_seconds)

    def news(self, *, everything: bool = False) -> Iterator[bytes]:
        """The hints for the other workers: the keys that changed since the last time, or all of them."""
        self._turn()
        keys = iter(list(self._own if everything else self._untold))
        self._untold.clear()
        while piece := list(islice(keys, KEYS_PER_HINT)):
            counts = {key_id: self._own[key_id] for key_id in piece}
            yield _News(worker=self._worker, window=self._window, counts=counts).model_dump_json().encode()

    def learn(self, data: bytes) -> None:
        """Takes the counts of another worker. Ignores those of another window, whether its clock is ahead or behind.

        Ignores a hint that it can't read. A count above the limit is cut to it: no worker grants more.
        """
        self._turn()
        try:
            told = _News.model_validate_json(data)
        except ValidationError:
            self._note_nonsense()
            return
        if told.worker == self._worker or told.window != self._window:
            return
        if told.worker not in self._others and len(self._others) >= WORKERS_MAX:
            return
        known = self._others.setdefault(told.worker, {})
        for key_id, taken in told.counts.items():
            counted = min(taken, self.limit)
            grown = counted - known.get(key_id, 0)
            is_new = key_id not in known
            if grown > 0 and not (is_new and self._learned >= LEARNED_MAX):
                known[key_id] = counted  # hints may overtake each other; counts only grow
                self._foreign[key_id] = self._foreign.get(key_id, 0) + grown
                self._learned += is_new

    def _turn(self) -> int:
        """Starts a new window when it is time; returns the seconds until the next one."""
        window, gone_seconds = divmod(int(self._clock.now().timestamp()), WINDOW_SECONDS)
        if window != self._window:
            self._begin(window)
        return WINDOW_SECONDS - gone_seconds

    def _begin(self, window: int) -> None:
        self._window = window
        self._own: dict[str, int] = {}
        self._untold: set[str] = set()
        self._others: dict[str, dict[str, int]] = {}
        self._foreign: dict[str, int] = {}  # sums of _others
        self._learned = 0  # entries of _others
        self._has_noted_nonsense = False

    def _note_nonsense(self) -> None:
        """Logs at most once in a window."""
        if not self._has_noted_nonsense:
            self._has_noted_nonsense = True
            _log.warning("hint_ignored", subject=SUBJECT)


@asynccontextmanager
async def shared(limit: RateLimit, hints: Hints) -> AsyncIterator[None]:
    """Sends and receives counts until the block ends."""
    stop_listening = hints.on_hint(SUBJECT, lambda _, data: limit.learn(data))
    telling = supervised("requests counted", lambda: _tell(limit, hints))
    try:
        yield
    finally:
        telling.cancel()
        stop_listening()


async def _tell(limit: RateLimit, hints: Hints) -> None:
    for turn in count(1):
        await asyncio.sleep(TELL_SECONDS)
        for data in limit.news(everything=turn % TELL_ALL_EVERY == 0):
            await hints.hint(SUBJECT, data)
