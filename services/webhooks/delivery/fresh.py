"""New events on their way to the engine of the same process, without a claim.

The transaction that makes an event also puts this process's lease on it, and passes it to the engine after the commit.
A claim would cost a search, an update that waits for the disk, and a call for the secret, one after the other. The
secret is requested while the transaction is under way.

The engine takes an event only while its lane has room and, as far as known, nothing older that is due. Any other event
is written without a lease and waits for a claim (docs/decisions/0040-what-saves-time-and-memory.md).
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, Protocol

from sqlalchemy.orm import Session

from kit.base.clock import Clock
from kit.base.ids import new_id
from kit.db.database import after_commit
from services.webhooks.clients import SigningKey
from services.webhooks.delivery.secrets import Secret
from services.webhooks.domain import EventTerms
from services.webhooks.store.claims import Lease, worker_name
from services.webhooks.store.stages import Claimed, LaneKey

_BATCH: Final = "new events under a lease"
"""Where a session keeps its `Batch`."""


@dataclass(eq=False)
class Batch:
    """The new events of one transaction that are under one lease, and the secrets that were requested for them.

    leased   how many leases were given
    claimed  the events that were written under them; of an invoice that has an event already, none is
    """

    lease: Lease
    leased: int = 0
    claimed: list[Claimed] = field(default_factory=list)
    secrets: dict[SigningKey, Secret] = field(default_factory=dict)


class Taker(Protocol):
    """A running engine. All is called from any thread."""

    def may_take(self, key: LaneKey, ahead: int) -> bool:
        """Returns whether a new event of this lane needs no claim; `ahead` events of its transaction come before it."""
        ...

    def secret(self, key: SigningKey) -> Secret:
        """Requests the secret."""
        ...

    def take(self, batch: Batch) -> None:
        """Sends these events, or gives them back."""
        ...

    def give_back(self, claimed: Sequence[Claimed]) -> None:
        """Gives these events back, after the engine's end too."""
        ...


class Fresh:
    """Passes new events to the engine of this process, if one runs."""

    def __init__(self, clock: Clock, *, lease_seconds: float) -> None:
        self._clock = clock
        self._lease = timedelta(seconds=lease_seconds)
        self._worker = worker_name()
        self._lock = threading.Lock()
        self._taker: Taker | None = None

    def open(self, taker: Taker) -> None:
        """Passes events to this engine from now on."""
        with self._lock:
            self._taker = taker

    def close(self) -> None:
        """After this the engine gets no event, and nothing is requested of it."""
        with self._lock:
            self._taker = None

    def lease(self, tx: Session, terms: EventTerms) -> Lease | None:
        """Returns the lease under which to write this new event; None when it has to be claimed."""
        batch: Batch | None = tx.info.get(_BATCH)
        ahead = 0 if batch is None else batch.leased
        key = (terms.merchant_id, terms.key_id)
        with self._lock:
            taker = self._taker
            if taker is None or not taker.may_take(LaneKey(terms.merchant_id, terms.destination), ahead):
                return None
            secret = None if batch and key in batch.secrets else taker.secret(key)
        if batch is None:
            now = self._clock.now()
            lease = Lease(token=new_id(), worker=self._worker, now=now, until=now + self._lease)
            batch = tx.info[_BATCH] = Batch(lease)
            after_commit(tx, self._pass_on, taker, batch)
        if secret is not None:
            batch.secrets[key] = secret
        batch.leased += 1
        return batch.lease

    def add(self, tx: Session, claimed: Claimed) -> None:
        """Passes an event that was written under the lease to the engine, after the commit."""
        batch: Batch = tx.info[_BATCH]
        batch.claimed.append(claimed)

    def _pass_on(self, taker: Taker, batch: Batch) -> None:
        if not batch.claimed:  # their invoices had their events already
            return
        with self._lock:  # the engine must not end between the check and the call
            if self._taker is taker:
                taker.take(batch)
                return
        taker.give_back(batch.claimed)
