"""The withdrawals service in one process: real PostgreSQL, a real gRPC port, a clock that is moved by hand."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from threading import Barrier
from typing import Any, TypeVar

import psycopg2
import pytest

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from fiatgate.withdrawals.v1.withdrawals_pb2_grpc import WithdrawalsServiceStub
from kit.base.ids import new_id
from kit.rpc.errors import Refused
from services.withdrawals.config import WithdrawalsSettings
from services.withdrawals.events import InvoicePaid
from services.withdrawals.operations import ledger
from services.withdrawals.rpc import add_to
from services.withdrawals.wiring import Deps, wire
from tests.support.clock import ManualClock
from tests.support.servers import PostgresServer
from tests.support.serving import connected, serving
from tests.support.signing import PUBLIC_KEYS, SEAL_KEY

R = TypeVar("R")

TRC20 = 1
TON = 3
TRON_ADDRESS = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
TON_ADDRESS = "UQAAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eH0Bm"
POOL_SIZE = 20


@dataclass(frozen=True)
class House:
    deps: Deps
    stub: WithdrawalsServiceStub
    clock: ManualClock
    admin_url: str

    def credit(
        self,
        amount: str,
        merchant_id: str | None = None,
        invoice_id: uuid.UUID | None = None,
        *,
        paid_at: datetime | None = None,
    ) -> str:
        """An invoice that brought `amount`, paid at this moment unless given; returns the merchant, a new one unless
        given.
        """
        merchant = uuid.UUID(merchant_id) if merchant_id else uuid.uuid4()
        paid = InvoicePaid(invoice_id or new_id(), merchant, Decimal(amount), paid_at or self.clock.now())
        with self.deps.db.transaction() as tx:
            ledger.credit_invoice(self.deps, tx, paid)
        return str(merchant)

    def withdraw(self, merchant_id: str, amount: str = "10", **values: Any) -> pb.Withdrawal:
        request: dict[str, Any] = {
            "merchant_id": merchant_id,
            "withdrawal_method_id": TRC20,
            "address": TRON_ADDRESS,
            "amount": amount,
            "request_key": str(uuid.uuid4()),
        }
        return self.stub.CreateWithdrawal(pb.CreateWithdrawalRequest(**(request | values))).withdrawal

    def process(self, withdrawal: pb.Withdrawal) -> pb.Withdrawal:
        request = pb.ProcessWithdrawalRequest(withdraw_uuid=withdrawal.withdraw_uuid)
        return self.stub.ProcessWithdrawal(request).withdrawal

    def complete(self, withdrawal: pb.Withdrawal, external_tx_id: str | None = None) -> pb.Withdrawal:
        request = pb.CompleteWithdrawalRequest(
            withdraw_uuid=withdrawal.withdraw_uuid, external_tx_id=external_tx_id or uuid.uuid4().hex
        )
        return self.stub.CompleteWithdrawal(request).withdrawal

    def fail(self, withdrawal: pb.Withdrawal, substatus: str = "") -> pb.Withdrawal:
        request = pb.FailWithdrawalRequest(withdraw_uuid=withdrawal.withdraw_uuid, substatus=substatus)
        return self.stub.FailWithdrawal(request).withdrawal

    def cancel(self, withdrawal: pb.Withdrawal, *, by_user: bool = False) -> pb.Withdrawal:
        request = pb.CancelWithdrawalRequest(withdraw_uuid=withdrawal.withdraw_uuid, by_user=by_user)
        return self.stub.CancelWithdrawal(request).withdrawal

    def get(self, withdrawal: pb.Withdrawal) -> pb.Withdrawal:
        request = pb.GetWithdrawalRequest(
            merchant_id=withdrawal.merchant_id, withdraw_uuid=withdrawal.withdraw_uuid
        )
        return self.stub.GetWithdrawal(request).withdrawal

    def balance(self, merchant_id: str) -> tuple[str, str, str, str]:
        """available, reserved, credited, withdrawn"""
        answer = self.stub.GetBalance(pb.GetBalanceRequest(merchant_id=merchant_id))
        return answer.available, answer.reserved, answer.credited, answer.withdrawn

    def check(self) -> pb.CheckLedgerResponse:
        return self.stub.CheckLedger(pb.CheckLedgerRequest())

    def execute(self, statement: str, *values: object, url: str | None = None) -> list[tuple[Any, ...]]:
        """Straight to the database, past all rules."""
        connection = psycopg2.connect(url or self.deps.settings.database_url)
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(statement, values)
                return cursor.fetchall() if cursor.description else []
        finally:
            connection.close()


def all_at_once(calls: Sequence[Callable[[], R]]) -> list[R | Refused]:
    barrier = Barrier(len(calls))

    def run(call: Callable[[], R]) -> R | Refused:
        barrier.wait(10)
        try:
            return call()
        except Refused as refused:
            return refused

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(run, calls))


@pytest.fixture(scope="module")
def house(database_url: Callable[[str], str], postgres: PostgresServer) -> Iterator[House]:
    """One service per module: tests make merchants of their own."""
    url = database_url("withdrawals")
    settings = WithdrawalsSettings(
        seal_keys=(SEAL_KEY,),
        database_url=url,
        bind="127.0.0.1:0",
        threads=POOL_SIZE,
        pool_size=POOL_SIZE,
        fact_public_keys=PUBLIC_KEYS,
    )
    clock = ManualClock()
    deps = wire(settings, clock=clock)
    admin_url = f"{postgres.admin_url.rpartition('/')[0]}/{url.rpartition('/')[2]}"
    with serving(add_to, deps, threads=POOL_SIZE) as address, connected(address) as channel:
        yield House(deps, WithdrawalsServiceStub(channel), clock, admin_url)
    deps.db.dispose()
