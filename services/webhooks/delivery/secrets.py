"""Signing secrets that are requested while the event that they will sign is still being written.

A secret is used again while its lease lasts: DeactivateApiKey answers only after that (docs/decisions/0077). So a
webhook whose event is made after that answer is not signed with it.
"""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import Executor, Future

from kit.base.clock import monotonic_seconds
from services.webhooks.clients import MerchantsClient, SigningKey

Secret = Future[str | None]
"""None: the merchant has no active key. Raises `Refused` when merchants does not answer."""


LEASES_MAX = 4096
"""More keys than one process sends for within a lease."""


class SecretsAhead:
    """Requests secrets in another thread. Those that are requested during a call go out together with the next call: no
    secret was read before it was requested.
    """

    def __init__(self, merchants: MerchantsClient, threads: Executor) -> None:
        self._merchants = merchants
        self._threads = threads
        self._lock = threading.Lock()
        self._waiting: dict[SigningKey, Secret] = {}
        self._calling = False
        self._leased: OrderedDict[SigningKey, tuple[float, Secret]] = OrderedDict()

    def request(self, key: SigningKey) -> Secret:
        """Does not wait; from any thread."""
        with self._lock:
            until_seconds, leased = self._leased.get(key, (0.0, None))
            if leased is not None and monotonic_seconds() < until_seconds:
                return leased
            secret = self._waiting.get(key)
            if secret is None:
                secret = self._waiting[key] = Future()
                if not self._calling:
                    self._calling = True
                    self._threads.submit(self._call)
            return secret

    def _call(self) -> None:
        while waiting := self._taken():
            started_seconds = monotonic_seconds()
            try:
                secrets = self._merchants.leased_secrets(waiting)
            except Exception as error:  # noqa: BLE001  each event that waits gets it
                for secret in waiting.values():
                    secret.set_exception(error)
            else:
                for key, secret in waiting.items():
                    secret.set_result(secrets.of_key.get(key))
                self._hold(
                    {key: waiting[key] for key in secrets.leased}, started_seconds + secrets.lease_seconds
                )

    def _taken(self) -> Mapping[SigningKey, Secret]:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            self._calling = bool(waiting)
            return waiting

    def _hold(self, secrets: Mapping[SigningKey, Secret], until_seconds: float) -> None:
        """Holds them for their lease; drops those whose leases are over, the first to end first."""
        with self._lock:
            for key, secret in secrets.items():
                self._leased[key] = until_seconds, secret
                self._leased.move_to_end(key)
            now_seconds = monotonic_seconds()
            while self._leased and (
                len(self._leased) > LEASES_MAX or next(iter(self._leased.values()))[0] <= now_seconds
            ):
                self._leased.popitem(last=False)
