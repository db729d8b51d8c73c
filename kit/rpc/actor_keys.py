"""The public keys of actor tokens, which each service fetches from identity and keeps.

They are fetched every minute, and at once for a key that is not known, at most once per second. While no key is known,
because identity starts as well, they are fetched each second: the first page of a person makes several calls at a
time, of which few could wait. While identity does not answer, the keys that are known count on: no work of merchants or
customers waits for identity.
"""

import threading
from collections.abc import Mapping
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from fiatgate.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from kit.base.clock import monotonic_seconds
from kit.base.tls import Identity
from kit.observe.log import get_logger
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from kit.work.worker import Loop, Signal, Stop, WorkerHealth

REFRESH_SECONDS: Final = 60.0
LEAST_SECONDS_BETWEEN: Final = 1.0
FETCH_SECONDS: Final = 1.0
WAIT_SECONDS: Final = 2.5
"""Longest time that a call with an unknown key waits: for the pause before the next fetch, and for the fetch."""
WAITING_AT_MOST: Final = 2
"""Calls with unknown keys that wait at a time. Others are refused at once, so invented keys hold few threads."""

_log = get_logger()


class ActorKeys:
    """The keys (kit.rpc.actor_tokens.Keys), and the worker that fetches them."""

    name = "actor-keys"

    def __init__(self, address: str, *, identity: Identity | None = None) -> None:
        opened = channel(address, name="identity", identity=identity)
        self._stub = accounts_pb2_grpc.ActorKeysServiceStub(opened)
        self._keys: Mapping[str, Ed25519PublicKey] = {}
        self._wanted = Signal()
        self._fetched = threading.Condition()
        self._begun = 0  # fetches
        self._ended = 0
        self._waiting = threading.BoundedSemaphore(WAITING_AT_MOST)
        self._fetched_at_seconds = 0.0
        self._stop = Stop()
        self._loop = Loop(
            self.name, self._step, every_seconds=REFRESH_SECONDS, signal=self._wanted, required=False
        )

    def find(self, key_id: str) -> Ed25519PublicKey | None:
        """Returns the key; fetches all when it is not known."""
        key = self._keys.get(key_id)
        if key is None and self._waiting.acquire(blocking=False):
            try:
                self._await_fetch()
            finally:
                self._waiting.release()
            key = self._keys.get(key_id)
        return key

    def _await_fetch(self) -> None:
        with self._fetched:
            next_one = self._begun + 1  # one that has begun may have missed the key
            self._wanted.set()
            self._fetched.wait_for(lambda: self._ended >= next_one, WAIT_SECONDS)

    def run(self, stop: Stop) -> None:
        self._stop = stop
        self._loop.run(stop)

    def health(self) -> WorkerHealth:
        """Returns a healthy state always: a service works for merchants and customers without identity."""
        return self._loop.health()

    def _step(self) -> bool:
        self._stop.wait(self._fetched_at_seconds + LEAST_SECONDS_BETWEEN - monotonic_seconds())
        with self._fetched:
            self._begun += 1
            number = self._begun
        try:
            answer = self._stub.ListActorKeys(accounts_pb2.ListActorKeysRequest(), timeout=FETCH_SECONDS)
            self._keys = {
                each.key_id: Ed25519PublicKey.from_public_bytes(each.public_key) for each in answer.keys
            }
        except Refused as refused:
            _log.warning("actor_keys_not_fetched", reason=refused.reason)
        finally:
            self._fetched_at_seconds = monotonic_seconds()
            with self._fetched:
                self._ended = number
                self._fetched.notify_all()
        if not self._keys:
            self._wanted.set()
        return False
