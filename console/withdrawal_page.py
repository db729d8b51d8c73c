"""The base of both forms of a new withdrawal, the operator's and the member's."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import falcon.asgi

from console.agreed_page import AgreedPage
from console.exchange import Request
from console.page import leave_for
from console.words.withdrawals import errors_of, notice_of
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.money import USDT_PLACES, has_decimals, money_text, typed_decimal
from kit.rpc.errors import Refused
from kit.rpc.values import invalid


@dataclass(frozen=True)
class Purse:
    """The balance of a merchant, its address book and the methods that are enabled, each by its id."""

    balance: pb.GetBalanceResponse
    book: Mapping[str, pb.WithdrawalAddress]
    methods: Mapping[int, pb.WithdrawalMethod]

    @property
    def sendable(self) -> Mapping[str, pb.WithdrawalAddress]:
        """The addresses whose method is enabled."""
        return {id: each for id, each in self.book.items() if each.withdrawal_method_id in self.methods}

    def line(self, each: pb.WithdrawalAddress) -> str:
        """Returns the line of a choice: name, method and the ends of the address."""
        code = self.methods[each.withdrawal_method_id].code
        return f"{each.name}: {code}, {each.address[:6]}…{each.address[-6:]}"

    def amount(self, text: str, method: pb.WithdrawalMethod | None) -> Decimal:
        """Returns the amount in USDT. Raises VALIDATION_ERROR for one that the service would refuse for its size."""
        try:
            amount = typed_decimal(text)
        except ValueError:
            raise invalid("amount", "an amount is a number, as 49.90") from None
        if not has_decimals(amount, at_most=USDT_PLACES):
            raise invalid("amount", "USDT has at most 6 decimals")
        if method is not None and amount < Decimal(method.min_amount):
            least = money_text(method.min_amount, "USDT")
            raise invalid("amount", f"the least amount is {least}")
        if amount > Decimal(self.balance.available):
            raise invalid("amount", f"{money_text(self.balance.available, 'USDT')} are available")
        return amount


class WithdrawalPage(AgreedPage):
    """The request of a withdrawal; `fresh` is the notice after it."""

    link = "/withdrawals"
    noun = "withdrawal"
    fresh: ClassVar[str]

    async def made(self, req: Request, typed: Mapping[str, str]) -> pb.Withdrawal:
        raise NotImplementedError

    async def make(self, req: Request, resp: falcon.asgi.Response, typed: Mapping[str, str]) -> None:
        made = await self.made(req, typed)
        leave_for(resp, f"/withdrawals/{made.withdraw_uuid}", notice=notice_of(made, fresh=self.fresh))

    async def purse(self, merchant_id: str) -> Purse:
        calls = self.deps.withdrawals
        balance, listed, methods = await asyncio.gather(
            calls.GetBalance(pb.GetBalanceRequest(merchant_id=merchant_id)),
            calls.ListAddresses(pb.ListAddressesRequest(merchant_id=merchant_id)),
            calls.ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest()),
        )
        return Purse(
            balance,
            {each.address_id: each for each in listed.addresses},
            {each.method_id: each for each in methods.methods if each.enabled},
        )

    def after(self, typed: Mapping[str, str], refused: Refused | None) -> dict[str, Any]:
        """Returns also the sentence of each field, as forms of withdrawals name them."""
        return ({"errors": errors_of(refused)} if refused else {}) | super().after(typed, refused)
