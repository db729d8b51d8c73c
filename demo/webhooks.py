"""Deliveries at the demo shop's server for webhooks, and the check of their signature."""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

KEPT: Final = 100
"""The newest deliveries, and the newest secrets."""


@dataclass(frozen=True)
class Delivery:
    """One POST. `path` is that of the callback URL; the names of headers are in lower case."""

    path: str
    headers: dict[str, str]
    body: bytes


def is_signed(delivery: Delivery, secrets: Iterable[str]) -> bool:
    """Returns whether one of the secrets has signed the delivery (docs/api.md#signature)."""
    signed = delivery.headers.get("x-signature-timestamp", "").encode() + b"." + delivery.body
    given = delivery.headers.get("x-signature", "").encode()
    return any(
        hmac.compare_digest(hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest().encode(), given)
        for secret in secrets
    )


@dataclass
class Inbox:
    """The newest deliveries, for any number of threads."""

    _deliveries: deque[Delivery] = field(default_factory=lambda: deque(maxlen=KEPT))
    _arrived: threading.Condition = field(default_factory=threading.Condition)

    def add(self, delivery: Delivery) -> None:
        with self._arrived:
            self._deliveries.append(delivery)
            self._arrived.notify_all()

    def at(self, path: str, *, count: int = 0, wait_seconds: float = 0) -> list[Delivery]:
        """Returns the deliveries to a path, once there are `count`; fewer when they don't come in time."""
        with self._arrived:
            self._arrived.wait_for(lambda: len(self._at(path)) >= count, wait_seconds)
            return self._at(path)

    def _at(self, path: str) -> list[Delivery]:
        return [each for each in self._deliveries if each.path == path]
