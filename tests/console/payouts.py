"""A merchant with money, whose withdrawals tests make and read past the pages."""

from datetime import timedelta
from typing import Final
from uuid import uuid4

import grpc

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from fiatgate.withdrawals.v1.withdrawals_pb2_grpc import WithdrawalsServiceStub
from kit.base.clock import SystemClock
from tests.console.house import OPERATOR, House, Person, text_of
from tests.e2e.market import Customer, Operator, Shop, settled
from tests.support.stack import Stack

TRON_ADDRESS: Final = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
WAIT: Final = timedelta(hours=24)
"""A new address can be used after so long."""


class Payouts:
    """A merchant with money, and its withdrawals as an operator at the command line makes them."""

    def __init__(self, house: House, channel: grpc.Channel) -> None:
        self._stub = WithdrawalsServiceStub(channel)
        self.shop = Shop.opened(house.stack)
        with Operator(house.stack) as operator:
            for _ in range(2):
                invoice = self.shop.create("https://shop.example/hook", amount="1900.00")
                Customer(invoice.created["payment_link"]).choose_and_pay()
                operator.confirm(invoice)
            settled(lambda: operator.available(self.shop) > 3000, "the credits")

    @property
    def merchant(self) -> str:
        return self.shop.merchant_id

    def made(self, amount: str = "20") -> str:
        request = pb.CreateWithdrawalRequest(
            merchant_id=self.merchant,
            withdrawal_method_id=1,
            address=TRON_ADDRESS,
            amount=amount,
            request_key=str(uuid4()),
        )
        return self._stub.CreateWithdrawal(request, metadata=OPERATOR).withdrawal.withdraw_uuid

    def now(self, withdraw_uuid: str) -> pb.Withdrawal:
        request = pb.GetWithdrawalRequest(merchant_id=self.merchant, withdraw_uuid=withdraw_uuid)
        return self._stub.GetWithdrawal(request).withdrawal

    def balance(self) -> pb.GetBalanceResponse:
        return self._stub.GetBalance(pb.GetBalanceRequest(merchant_id=self.merchant))


def added(house: House, person: Person, name: str, *, usable: bool, address: str = TRON_ADDRESS) -> str:
    """The id of a new address in the book; `usable`: as if its waiting time were over."""
    page = person.post("/addresses", {"method": "1", "address": address, "name": name})
    assert "The address is added." in text_of(page), text_of(page)
    lines = person.rows("/addresses.csv")
    id = next(line["address_id"] for line in lines if line["name"] == name)
    if usable:
        wait_is_over(house.stack, id)
    return id


def wait_is_over(stack: Stack, address_id: str) -> None:
    """An address of the book can be used from now on."""
    usable_at = SystemClock().now().replace(microsecond=0) - timedelta(days=1)
    stack.decide(
        "withdrawals",
        "UPDATE withdrawal_addresses SET created_at = :at, usable_at = :at WHERE id = :id",
        "withdrawal-address.add",
        f"withdrawal-address:{address_id}",
        {"usable_at": usable_at},
        at=usable_at,
        id=address_id,
    )
