"""The base of both forms of a new withdrawal, the operator's and the member's: a form, a preview of it, the request."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar

import falcon.asgi

from console.exchange import Request
from console.page import Page, leave_for
from console.ui.pages import only_for
from console.words.withdrawals import errors_of, form_problem, notice_of
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from kit.base.money import USDT_PLACES, has_decimals, money_text, typed_decimal
from kit.rpc.errors import Refused, is_away
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


class WithdrawalPage(Page):
    """A form with a key: sent twice, it makes one withdrawal.

    roles      may request
    fields     of the form, `request_key` among them
    mendable   refusals after which the form is shown again
    again      the template after a request without an answer
    fresh      the notice after the request
    """

    link = "/withdrawals"
    roles: ClassVar[frozenset[str]]
    fields: ClassVar[Sequence[str]]
    mendable: ClassVar[Collection[str]]
    again: ClassVar[str]
    fresh: ClassVar[str]

    async def ask(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: Mapping[str, str],
        refused: Refused | None = None,
    ) -> None:
        """Shows the form."""
        raise NotImplementedError

    async def preview(self, req: Request, resp: falcon.asgi.Response, typed: Mapping[str, str]) -> None:
        """Shows the withdrawal as it will be made. Raises VALIDATION_ERROR for what can't be made."""
        raise NotImplementedError

    async def made(self, req: Request, typed: Mapping[str, str]) -> pb.Withdrawal:
        raise NotImplementedError

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Shows what will happen; with `agreed`, from that page, makes it."""
        only_for(req, self.roles)
        form = await self.form(req)
        typed = {name: form.line(name, most=200) for name in self.fields}
        try:
            if form.text("agreed"):
                made = await self.made(req, typed)
                leave_for(
                    resp, f"/withdrawals/{made.withdraw_uuid}", notice=notice_of(made, fresh=self.fresh)
                )
            else:
                await self.preview(req, resp, typed)
        except Refused as refused:
            if is_away(refused) and form.text("agreed"):  # without a call: the service has just failed
                self.show(req, resp, self.again, refused=refused, status=503, typed=typed)
            elif refused.reason in self.mendable:
                await self.ask(req, resp, typed, refused)
            else:
                raise

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

    def new(self, **given: str) -> dict[str, str]:
        """Returns the fields of a new form."""
        return dict.fromkeys(self.fields, "") | given | {"request_key": str(new_id())}

    def after(self, typed: Mapping[str, str], refused: Refused | None) -> dict[str, Any]:
        """Returns what the form is shown with after the refusal; with a new key when the old one made a withdrawal."""
        if problem := form_problem(refused, typed["request_key"]):
            return {
                "typed": {**typed, "request_key": str(new_id())},
                "problem": problem,
                "errors": {},
            }
        return {"typed": typed} | ({"errors": errors_of(refused)} if refused else {})
