"""Signing secrets that are requested while the event that they will sign is still being written.

A secret is used again while its lease lasts: DeactivateApiKey answers only after that (docs/decisions/0003). So a
webhook whose event is made after that answer is not signed with it.
"""

import threading
from collections.abc import Mapping
from concurrent.futures import Executor, Future

from kit.rpc.leases import Leases
from services.webhooks.clients import IdentityClient, SigningKey

Secret = Future[str | None]
"""None: the merchant has no active key. Raises `Refused` when identity does not answer."""


class SecretsAhead:
    """Requests secrets in another thread. Those that are requested during a call go out together with the next call: no
    secret was read before it was requested.
    """

    def __init__(self, identity: IdentityClient, threads: Executor) -> None:
        self._identity = identity
        self._threads = threads
        self._lock = threading.Lock()
        self._waiting: dict[SigningKey, Secret] = {}
        self._calling = False
        self._leases = Leases[SigningKey, Secret]()

    def request(self, key: SigningKey) -> Secret:
        """Does not wait; from any thread."""
        leased = self._leases.find(key)
        if leased is not None:
            return leased
        with self._lock:
            secret = self._waiting.get(key)
            if secret is None:
                secret = self._waiting[key] = Future()
                if not self._calling:
                    self._calling = True
                    self._threads.submit(self._call)
            return secret

    def _call(self) -> None:
        while waiting := self._taken():
            started_seconds = self._leases.now_seconds()
            try:
                secrets = self._identity.leased_secrets(waiting)
            except Exception as error:  # noqa: BLE001  each event that waits gets it
                for secret in waiting.values():
                    secret.set_exception(error)
            else:
                for key, secret in waiting.items():
                    secret.set_result(secrets.of_key.get(key))
                for key in secrets.leased:
                    self._leases.hold(
                        key,
                        waiting[key],
                        started_seconds=started_seconds,
                        milliseconds=secrets.lease_milliseconds,
                    )

    def _taken(self) -> Mapping[SigningKey, Secret]:
        with self._lock:
            waiting, self._waiting = self._waiting, {}
            self._calling = bool(waiting)
            return waiting
