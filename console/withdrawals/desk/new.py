"""The request of a new withdrawal by an operator: the merchant, a form with its balance and addresses, a preview."""

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
from console.withdrawals import words
from console.words.withdrawals import errors_of, form_problem, notice_of
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id, parse_id
from kit.base.money import amount_text, typed_decimal, usdt_text
from kit.rpc.errors import Refused, invalid, is_away

PAYS: Final = frozenset({"treasury", "admin"})
TYPED: Final = ("merchant", "book", "method", "address", "memo", "amount", "request_key")
"""The fields of the form of a new withdrawal."""
SUGGESTED_MOST: Final = 200


@dataclass(frozen=True)
class Purse:
    """The balance of a merchant, its address book and the methods that are enabled, each by its id."""

    balance: pb.GetBalanceResponse
    book: Mapping[str, pb.WithdrawalAddress]
    methods: Mapping[int, pb.WithdrawalMethod]

    @property
    def addresses(self) -> Mapping[str, str]:
        """The lines of the choice: those of the book, and none."""
        lines = {
            id: self._line(each)
            for id, each in self.book.items()
            if each.withdrawal_method_id in self.methods
        }
        return lines | {"": "Another address" if lines else "The book has no address that can be used"}

    def _line(self, each: pb.WithdrawalAddress) -> str:
        code, waits = self.methods[each.withdrawal_method_id].code, ", still waits" if each.waits else ""
        return f"{each.name}: {code}, {each.address[:6]}…{each.address[-6:]}{waits}"


class NewWithdrawalPage(Page):
    """/withdrawals/new?merchant=…: the form has a key, so a form that is sent twice makes one withdrawal."""

    link = "/withdrawals"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, PAYS)
        typed = dict.fromkeys(TYPED, "") | {
            "merchant": (req.get_param("merchant") or "").strip(),
            "request_key": str(new_id()),
        }
        try:
            typed["merchant"] = await self.merchant_named(typed["merchant"])
        except Refused as refused:
            if refused.reason not in words.MENDABLE:
                raise
            await self._ask_merchant(req, resp, typed["merchant"], refused=refused)
            return
        if typed["merchant"]:
            await self._show(req, resp, typed)
        else:
            await self._ask_merchant(req, resp, "")

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Shows what will happen; with `agreed`, from that page, reserves the amount."""
        only_for(req, PAYS)
        form = await self.form(req)
        typed = {name: form.line(name, most=200) for name in TYPED}
        try:
            if form.text("agreed"):
                made = await self._create(typed)
                notice = notice_of(made, fresh="withdrawal-created")
                leave_for(resp, f"/withdrawals/{made.withdraw_uuid}", notice=notice)
            else:
                await self._preview(req, resp, typed)
        except Refused as refused:
            if is_away(refused) and form.text("agreed"):  # without a call: the service has just failed
                self.show(req, resp, "withdrawal-again", refused=refused, status=503, typed=typed)
            elif refused.reason not in words.MENDABLE:
                raise
            elif parse_id(typed["merchant"]):
                await self._show(req, resp, typed, refused=refused)
            else:
                await self._ask_merchant(req, resp, typed["merchant"], refused=refused)

    async def _create(self, typed: Mapping[str, str]) -> pb.Withdrawal:
        request = pb.CreateWithdrawalRequest(
            merchant_id=typed["merchant"],
            withdrawal_method_id=_number(typed["method"]),
            address=typed["address"],
            amount=typed["amount"],
            request_key=typed["request_key"],
        )
        if typed["memo"]:
            request.address_memo = typed["memo"]
        return (await self.deps.withdrawals.CreateWithdrawal(request)).withdrawal

    async def _purse(self, merchant_id: str) -> Purse:
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

    async def _preview(self, req: Request, resp: falcon.asgi.Response, typed: Mapping[str, str]) -> None:
        """Shows the withdrawal as it will be made. Raises VALIDATION_ERROR for what can't be made."""
        if not typed["merchant"]:
            raise invalid("VALIDATION_ERROR", "name the merchant", field="merchant")
        merchant_id = await self.merchant_named(typed["merchant"])
        purse = await self._purse(merchant_id)
        entry = purse.book.get(typed["book"])
        made = dict(typed) | {"merchant": merchant_id, "book": ""}
        if entry is not None:
            made |= {
                "method": str(entry.withdrawal_method_id),
                "address": entry.address,
                "memo": entry.address_memo,
            }
        method = purse.methods.get(_number(made["method"]))
        if method is None:
            raise invalid("VALIDATION_ERROR", "choose a method that is enabled", field="method")
        if not made["address"]:
            raise invalid(
                "VALIDATION_ERROR", "choose an address of the book, or give another one", field="address"
            )
        amount = _amount(typed["amount"], method, purse.balance)
        self.show(
            req,
            resp,
            "withdrawal-preview",
            typed=made | {"amount": usdt_text(amount)},
            method=method,
            entry=entry,
            names=await self.names(merchant_id),
            arrives=usdt_text(amount - Decimal(method.network_fee)),
            left=usdt_text(Decimal(purse.balance.available) - amount),
        )

    async def _ask_merchant(
        self, req: Request, resp: falcon.asgi.Response, text: str, *, refused: Refused | None = None
    ) -> None:
        request = merchants_pb2.ListMerchantsRequest(limit=SUGGESTED_MOST)
        merchants = (await self.deps.merchants.ListMerchants(request)).merchants
        self.show(
            req,
            resp,
            "withdrawal-merchant",
            refused=refused,
            text=text,
            merchants=sorted(merchants, key=lambda each: each.name.casefold()),
        )

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: Mapping[str, str],
        *,
        refused: Refused | None = None,
        **values: Any,
    ) -> None:
        purse, names = await asyncio.gather(self._purse(typed["merchant"]), self.names(typed["merchant"]))
        if refused is not None:
            values["errors"] = errors_of(refused)
        if problem := form_problem(refused, typed["request_key"]):
            typed = {**typed, "request_key": str(new_id())}
            values |= {"problem": problem, "errors": {}}
        self.show(
            req, resp, "withdrawal-new", refused=refused, typed=typed, purse=purse, names=names, **values
        )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _amount(text: str, method: pb.WithdrawalMethod, balance: pb.GetBalanceResponse) -> Decimal:
    """Returns the amount in USDT. Raises VALIDATION_ERROR for one that the service would refuse for its size."""
    try:
        amount = typed_decimal(text)
    except ValueError:
        raise invalid("VALIDATION_ERROR", "an amount is a number, as 49.90", field="amount") from None
    if amount < Decimal(method.min_amount):
        message = f"the least amount of {method.code} is {amount_text(method.min_amount)} USDT"
        raise invalid("VALIDATION_ERROR", message, field="amount")
    if amount > Decimal(balance.available):
        raise invalid(
            "VALIDATION_ERROR", f"{amount_text(balance.available)} USDT are available", field="amount"
        )
    return amount
