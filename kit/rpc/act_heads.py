"""The worker that exchanges heads of the chains of acts with accounts (kit.audit.heads)."""

from typing import Final

import grpc

from fiatgate.accounts.v1 import accounts_pb2, accounts_pb2_grpc
from kit.audit import heads
from kit.audit.chain import CHAIN, Head
from kit.audit.heads import KEEPER, Exchange, HeadRefused
from kit.base.clock import monotonic_seconds
from kit.base.proto import datetime_from
from kit.base.tls import Identity
from kit.db.database import Database
from kit.observe import metrics
from kit.observe.log import get_logger
from kit.rpc.client import channel
from kit.rpc.errors import Refused
from kit.work.worker import Loop, Stop, WorkerHealth

EVERY_SECONDS: Final = 5.0
AT_LEAST_SECONDS: Final = 60.0
"""Also without acts of its own a service takes the head of accounts this often."""
EXCHANGE_SECONDS: Final = 2.0

REFUSED: Final = metrics.counter(
    "act_heads_refused",
    "Exchanges of heads that failed because acts were removed or rewritten in one database",
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
        self._asked_at_seconds = -AT_LEAST_SECONDS
        self._loop = Loop(self.name, self.step, every_seconds=EVERY_SECONDS, required=False)

    def run(self, stop: Stop) -> None:
        self._loop.run(stop)

    def health(self) -> WorkerHealth:
        """Returns a healthy state always: a service works for merchants and customers without accounts."""
        return self._loop.health()

    def step(self) -> bool:
        """Makes an exchange if this chain has grown, or none was made for a minute."""
        with self._db.transaction() as tx:
            if not CHAIN.is_usable(tx):
                return False
            own, last = heads.own_head(tx), heads.last_exchange(tx, KEEPER)
        now = monotonic_seconds()
        is_known = last is not None and last.own == own
        if is_known and now - self._asked_at_seconds < AT_LEAST_SECONDS:
            return False
        self._asked_at_seconds = now
        self._exchange(own, 1 if last is None else last.number + 1)
        return False

    def _exchange(self, own: Head, number: int) -> None:
        request = accounts_pb2.ExchangeHeadsRequest(
            service=self._service, count=own.count, hash=own.hash, number=number
        )
        try:
            answer = self._stub.ExchangeHeads(request, timeout=EXCHANGE_SECONDS)
            given = Exchange(
                KEEPER,
                answer.number,
                datetime_from(answer.at),
                theirs=Head(answer.count, answer.hash),
                own=Head(answer.kept_count, answer.kept_hash),
            )
            heads.take(self._db, given)
        except HeadRefused as contradiction:
            self._contradicted(str(contradiction))
        except Refused as refused:  # kit.rpc.client has logged it; the next round tries again
            if refused.code is grpc.StatusCode.INVALID_ARGUMENT:
                self._contradicted(refused.message)

    def _contradicted(self, error: str) -> None:
        REFUSED.inc()
        _log.error("act_head_refused", error=error)
