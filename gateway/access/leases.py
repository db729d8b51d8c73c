"""Verified keys that a worker may use again for a moment, without a call (docs/decisions/0077).

merchants gives the time with its answer, and each of its acts that changes an answer waits at its end until that time
is over. A lease begins before the call is sent, so it ends before the wait of an act that the call did not see.

Only keys that were accepted have a lease. Keys are stored by a keyed hash, not as they are: they are secrets.
"""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from hashlib import blake2b
from typing import Final

from fiatgate.merchants.v1.merchants_pb2 import AuthenticateResponse
from kit.base.clock import monotonic_seconds

LEASES_MAX: Final = 4096
"""More keys than one worker can serve within the longest lease; each takes about 2 KB."""


class Leases:
    """The leases of one worker, those that end first at the front."""

    def __init__(self, *, now_seconds: Callable[[], float] = monotonic_seconds) -> None:
        self._now_seconds = now_seconds
        self._secret = secrets.token_bytes(16)
        self._held: OrderedDict[bytes, tuple[float, AuthenticateResponse]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._held)

    def answer(self, key: str) -> AuthenticateResponse | None:
        """Returns the answer for this key while its lease lasts."""
        until_seconds, answer = self._held.get(self._hash(key), (0.0, None))
        return answer if self._now_seconds() < until_seconds else None

    async def asked(
        self, key: str, call: Callable[[], Awaitable[AuthenticateResponse]]
    ) -> AuthenticateResponse:
        """Returns the answer of the call, and holds it for its lease. Raises what the call raises."""
        started_seconds = self._now_seconds()
        answer = await call()
        if answer.lease_milliseconds:
            self._hold(self._hash(key), started_seconds + answer.lease_milliseconds / 1000, answer)
        return answer

    def _hold(self, name: bytes, until_seconds: float, answer: AuthenticateResponse) -> None:
        self._held[name] = (until_seconds, answer)
        self._held.move_to_end(name)
        while len(self._held) > LEASES_MAX or self._first_has_ended():
            self._held.popitem(last=False)

    def _first_has_ended(self) -> bool:
        return bool(self._held) and next(iter(self._held.values()))[0] <= self._now_seconds()

    def _hash(self, key: str) -> bytes:
        return blake2b(key.encode(), digest_size=16, key=self._secret).digest()
