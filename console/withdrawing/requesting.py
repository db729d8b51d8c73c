"""The request of a withdrawal: a form, the same as a sentence to agree to, and the request."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.page import Page, leave_for
from console.ui.pages import only_for
from console.words.withdrawals import errors_of, form_problem, notice_of
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from kit.base.money import USDT_PLACES, has_decimals, money_text, typed_decimal, usdt_text
from kit.rpc.errors import Refused, invalid, is_away

REQUESTS: Final = frozenset({"owner", "finance"})
FIELDS: Final = ("address", "amount", "fee", "request_key")
MENDABLE: Final = frozenset(
    {
        "VALIDATION_ERROR",
        "EDIT_CONFLICT",
        "MERCHANT_BLOCKED",
        "OWNER_BLOCKED",
        "INSUFFICIENT_BALANCE",
        "WITHDRAWAL_ADDRESS_INVALID",
        "WITHDRAWAL_ADDRESS_NOT_FOUND",
        "WITHDRAWAL_ADDRESS_WAITS",
        "WITHDRAWAL_AMOUNT_INVALID",
        "WITHDRAWAL_METHOD_NOT_FOUND",
    }
)
FEE_CHANGED: Final = "The network’s fee is another one by now, and nothing was requested. Look at it again."


@dataclass(frozen=True)
class Purse:
    """The parts of a request: the balance, the addresses that may be used or wait, and methods by their id."""

    balance: pb.GetBalanceResponse
    book: Mapping[str, pb.WithdrawalAddress]
    methods: Mapping[int, pb.WithdrawalMethod]

    @property
    def usable(self) -> Mapping[str, pb.WithdrawalAddress]:
        return {id: each for id, each in self.book.items() if self._may_go_to(each)}

    @property
    def waiting(self) -> list[pb.WithdrawalAddress]:
        return [each for each in self.book.values() if each.waits]

    def _may_go_to(self, address: pb.WithdrawalAddress) -> bool:
        method = self.methods.get(address.withdrawal_method_id)
        return not address.waits and method is not None and method.enabled


class RequestPage(Page):
    """/withdrawals/new?address=…: the form has a key, so a form that is sent twice makes one withdrawal."""

    link = "/withdrawals"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, REQUESTS)
        given = {"address": req.get_param("address") or "", "request_key": str(new_id())}
        self._show(req, resp, await self._purse(req), dict.fromkeys(FIELDS, "") | given)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Shows what will happen; with `agreed`, from that page, requests it."""
        only_for(req, REQUESTS)
        form = await self.form(req)
        typed = {name: form.line(name, most=200) for name in FIELDS}
        try:
            if form.text("agreed"):
                made = await self._request(req, typed)
                notice = notice_of(made, fresh="withdrawal-requested")
                leave_for(resp, f"/withdrawals/{made.withdraw_uuid}", notice=notice)
                return
            purse = await self._purse(req)
            self._ask(req, resp, purse, typed)
        except Refused as refused:
            if is_away(refused) and form.text("agreed"):  # without a call: the service has just failed
                self.show(req, resp, "withdrawing-again", refused=refused, status=503, typed=typed)
                return
            if refused.reason not in MENDABLE:
                raise
            self._show(req, resp, await self._purse(req), typed, refused=refused)

    async def _request(self, req: Request, typed: Mapping[str, str]) -> pb.Withdrawal:
        request = pb.RequestWithdrawalRequest(
            merchant_id=req.exchange.signed_in.merchant_id,
            address_id=typed["address"],
            amount=typed["amount"],
            network_fee=typed["fee"],
            request_key=typed["request_key"],
        )
        return (await self.deps.withdrawals.RequestWithdrawal(request)).withdrawal

    async def _purse(self, req: Request) -> Purse:
        own, calls = req.exchange.signed_in.merchant_id, self.deps.withdrawals
        balance, listed, methods = await asyncio.gather(
            calls.GetBalance(pb.GetBalanceRequest(merchant_id=own)),
            calls.ListAddresses(pb.ListAddressesRequest(merchant_id=own)),
            calls.ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest()),
        )
        return Purse(
            balance,
            {each.address_id: each for each in listed.addresses},
            {each.method_id: each for each in methods.methods},
        )

    def _ask(self, req: Request, resp: falcon.asgi.Response, purse: Purse, typed: Mapping[str, str]) -> None:
        """Shows the request as it will be made. Raises VALIDATION_ERROR for what can't be requested."""
        address = purse.usable.get(typed["address"])
        if address is None:
            raise invalid("VALIDATION_ERROR", "choose an address of the list", field="address")
        method = purse.methods[address.withdrawal_method_id]
        amount = _amount(typed["amount"], method, purse.balance)
        self.show(
            req,
            resp,
            "withdrawing-agree",
            address=address,
            method=method,
            typed=dict(typed) | {"amount": usdt_text(amount), "fee": method.network_fee},
            receives=usdt_text(amount - Decimal(method.network_fee)),
            left=usdt_text(Decimal(purse.balance.available) - amount),
        )

    def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        purse: Purse,
        typed: Mapping[str, str],
        *,
        refused: Refused | None = None,
    ) -> None:
        values: dict[str, Any] = {"errors": errors_of(refused)} if refused else {}
        if refused is not None and refused.reason == "EDIT_CONFLICT":
            values = {"problem": FEE_CHANGED}
        if problem := form_problem(refused, typed["request_key"]):
            typed = {**typed, "request_key": str(new_id())}
            values = {"problem": problem, "errors": {}}
        self.show(
            req,
            resp,
            "withdrawing",
            refused=refused,
            purse=purse,
            typed=typed,
            words={id: _words(each, purse) for id, each in purse.usable.items()},
            **values,
        )


def _words(address: pb.WithdrawalAddress, purse: Purse) -> str:
    """Returns the line of the choice: name, network and the ends of the address."""
    code = purse.methods[address.withdrawal_method_id].code
    return f"{address.name}: {code}, {address.address[:6]}…{address.address[-6:]}"


def _amount(text: str, method: pb.WithdrawalMethod, balance: pb.GetBalanceResponse) -> Decimal:
    """Returns the amount in USDT. Raises VALIDATION_ERROR for one that the service would refuse."""
    try:
        amount = typed_decimal(text)
    except ValueError:
        raise invalid("VALIDATION_ERROR", "an amount is a number, as 49.90", field="amount") from None
    if not has_decimals(amount, at_most=USDT_PLACES):
        raise invalid("VALIDATION_ERROR", "USDT has at most 6 decimals", field="amount")
    if amount < Decimal(method.min_amount):
        message = f"the least amount is {money_text(method.min_amount, 'USDT')}"
        raise invalid("VALIDATION_ERROR", message, field="amount")
    if amount > Decimal(balance.available):
        raise invalid(
            "VALIDATION_ERROR", f"{money_text(balance.available, 'USDT')} are available", field="amount"
        )
    return amount
