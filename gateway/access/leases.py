"""Verified keys that a worker may use again for a moment, without a call (docs/decisions/0003).

identity gives the time with its answer, and each of its acts that changes an answer waits at its end until that time
is over. Only keys that were accepted have a lease. Keys are stored by a keyed hash, not as they are: they are secrets.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from hashlib import blake2b

from fiatgate.merchants.v1.merchants_pb2 import AuthenticateResponse
from kit.base.clock import monotonic_seconds
from kit.rpc.leases import Leases, Seconds


class KeyLeases:
    """The leases of one worker. Each takes about 2 KB."""

    def __init__(self, *, now_seconds: Seconds = monotonic_seconds) -> None:
        self._leases = Leases[bytes, AuthenticateResponse](now_seconds)
        self._secret = secrets.token_bytes(16)

    def __len__(self) -> int:
        return len(self._leases)

    def find(self, key: str) -> AuthenticateResponse | None:
        """Returns the answer for this key while its lease lasts."""
        return self._leases.find(self._hash(key))

    async def fetch(
        self, key: str, call: Callable[[], Awaitable[AuthenticateResponse]]
    ) -> AuthenticateResponse:
        """Returns the answer of the call, and holds it for its lease. Raises what the call raises."""
        started_seconds = self._leases.now_seconds()
        answer = await call()
        self._leases.hold(
            self._hash(key), answer, started_seconds=started_seconds, milliseconds=answer.lease_milliseconds
        )
        return answer

    def _hash(self, key: str) -> bytes:
        return blake2b(key.encode(), digest_size=16, key=self._secret).digest()
