"""The worker that gives the head of a chain of acts to identity, and keeps that of identity (kit.audit.heads)."""

from typing import Final

import grpc

from fiatgate.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from kit.audit import heads
from kit.audit.chain import EMPTY, Head, head
from kit.audit.heads import KEEPER, HeadRefused
from kit.base.clock import SystemClock, monotonic_seconds
from kit.base.tls import Identity
from kit.db.database import Database
from kit.observe import metrics
from kit.observe.log import get_logger
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from kit.work.worker import Loop, Stop, WorkerHealth

EVERY_SECONDS: Final = 5.0
AT_LEAST_SECONDS: Final = 60.0
"""Also without acts of its own a service takes the head of identity this often."""
CALL_SECONDS: Final = 2.0

REFUSED: Final = metrics.counter(
    "act_heads_refused",
    "Heads that were refused because acts were removed or rewritten in one database",
)

_log = get_logger()


class ActHeads:
    """The worker of one process; any number of processes of a service may run it."""

    name = "act-heads"

    def __init__(self, db: Database, service: str, address: str, *, identity: Identity | None = None) -> None:
        opened = channel(address, name=KEEPER, identity=identity)
        self._stub = accounts_pb2_grpc.HeadsServiceStub(opened)
        self._db = db
        self._service = service
        self._clock = SystemClock()
        self._given_at_seconds = -AT_LEAST_SECONDS
        self._given_count: int | None = None
        self._loop = Loop(self.name, self.step, every_seconds=EVERY_SECONDS, required=False)

    def run(self, stop: Stop) -> None:
        self._loop.run(stop)

    def health(self) -> WorkerHealth:
        """Returns a healthy state always: a service works for merchants and customers without identity."""
        return self._loop.health()

    def step(self) -> bool:
        """Gives the head to identity if this chain has grown, until identity has one itself, and once a minute."""
        with self._db.autocommit() as connection:
            own = head(connection) or Head(0, EMPTY, self._clock.now())
        now = monotonic_seconds()
        if own.count == self._given_count and now - self._given_at_seconds < AT_LEAST_SECONDS:
            return False
        self._given_at_seconds = now
        if self._give(own):
            self._given_count = own.count
        return False

    def _give(self, own: Head) -> bool:
        """Returns whether identity has the head, and this service that of identity."""
        try:
            answer = self._stub.KeepHead(self._request(own), timeout=CALL_SECONDS)
            if (
                answer.kept_count != own.count
            ):  # not kept yet: first the kept one has to be found in this chain
                with self._db.transaction() as tx:
                    heads.require_in_chain(tx, by=KEEPER, count=answer.kept_count, hash=answer.kept_hash)
                request = self._request(own, continues=answer.kept_count)
                answer = self._stub.KeepHead(request, timeout=CALL_SECONDS)
            if answer.count:
                heads.keep(self._db, self._clock, service=KEEPER, count=answer.count, hash=answer.hash)
        except HeadRefused as contradiction:
            self._contradicted(str(contradiction))
        except Refused as refused:  # kit.rpc.client has logged it; the next round tries again
            if refused.code is grpc.StatusCode.INVALID_ARGUMENT:
                self._contradicted(refused.message)
        else:
            return answer.kept_count == own.count and answer.count > 0
        return False

    def _request(self, own: Head, *, continues: int = 0) -> accounts_pb2.KeepHeadRequest:
        with self._db.transaction() as tx:
            keepers = heads.last(tx, KEEPER)
        return accounts_pb2.KeepHeadRequest(
            service=self._service,
            count=own.count,
            hash=own.hash,
            continues=continues,
            own_count=0 if keepers is None else keepers.count,
            own_hash=b"" if keepers is None else keepers.hash,
        )

    def _contradicted(self, error: str) -> None:
        REFUSED.inc()
        _log.error("act_head_refused", error=error)
