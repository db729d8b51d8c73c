"""The request of a new withdrawal by an operator: the merchant, a form with its balance and addresses, a preview."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

import falcon.asgi

from console.agreed_page import given
from console.exchange import Request
from console.ui.pages import only_for
from console.withdrawal_page import Purse, WithdrawalPage
from console.withdrawals import words
from console.words.withdrawals import errors_of
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import parse_id
from kit.base.money import usdt_text
from kit.rpc.errors import Refused
from kit.rpc.values import invalid, together

PAYS: Final = frozenset({"treasury", "admin"})
SUGGESTED_MOST: Final = 200


class NewWithdrawalPage(WithdrawalPage):
    """/withdrawals/new?merchant=…"""

    roles = PAYS
    fields = ("merchant", "book", "method", "address", "memo", "amount", "reason", "request_key")
    most = 500
    mendable = words.MENDABLE
    again = "withdrawal-again"
    fresh = "withdrawal-created"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, self.roles)
        typed = self.new(merchant=(req.get_param("merchant") or "").strip())
        try:
            typed["merchant"] = await self.merchant_named(typed["merchant"])
        except Refused as refused:
            if refused.reason not in words.MENDABLE:
                raise
            await self.ask(req, resp, typed, refused)
        else:
            await self.ask(req, resp, typed)

    on_head = on_get

    async def made(self, req: Request, typed: Mapping[str, str]) -> pb.Withdrawal:
        request = pb.CreateWithdrawalRequest(
            merchant_id=typed["merchant"],
            withdrawal_method_id=_number(typed["method"]),
            address=typed["address"],
            amount=typed["amount"],
            request_key=typed["request_key"],
            reason=typed["reason"],
        )
        if typed["memo"]:
            request.address_memo = typed["memo"]
        return (await self.deps.withdrawals.CreateWithdrawal(request)).withdrawal

    async def preview(self, req: Request, resp: falcon.asgi.Response, typed: Mapping[str, str]) -> None:
        if not typed["merchant"]:
            raise invalid("merchant", "name the merchant")
        merchant_id = await self.merchant_named(typed["merchant"])
        purse = await self.purse(merchant_id)
        entry = purse.book.get(typed["book"])
        made = dict(typed) | {"merchant": merchant_id, "book": ""}
        if entry is not None:
            made |= {
                "method": str(entry.withdrawal_method_id),
                "address": entry.address,
                "memo": entry.address_memo,
            }
        known = purse.methods.get(_number(made["method"]))
        checks: dict[str, Callable[[], Any]] = {
            "method": lambda: given("method", known, "choose a method that is enabled"),
            "address": lambda: given(
                "address", made["address"], "choose an address of the book, or give another one"
            ),
            "amount": lambda: purse.amount(typed["amount"], known),
        }
        if known is not None and made["address"]:
            checks |= await self._checks_of(made)
        checked = together(**checks)
        method, amount = checked["method"], checked["amount"]
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

    async def _checks_of(self, made: Mapping[str, str]) -> Mapping[str, Callable[[], Any]]:
        """Returns the checks that fail by what the service says of the address, by their field."""
        request = pb.CheckAddressRequest(
            withdrawal_method_id=_number(made["method"]), address=made["address"], address_memo=made["memo"]
        )
        try:
            await self.deps.withdrawals.CheckAddress(request)
        except Refused as refused:
            if refused.reason not in self.mendable:
                raise
            return {name: partial(given, name, "", text) for name, text in errors_of(refused).items()}
        return {}

    async def ask(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: Mapping[str, str],
        refused: Refused | None = None,
    ) -> None:
        if not parse_id(typed["merchant"]):
            await self._ask_merchant(req, resp, typed["merchant"], refused)
            return
        purse, names = await asyncio.gather(self.purse(typed["merchant"]), self.names(typed["merchant"]))
        self.show(
            req,
            resp,
            "withdrawal-new",
            refused=refused,
            purse=purse,
            lines=_lines(purse),
            names=names,
            **self.after(typed, refused),
        )

    async def _ask_merchant(
        self, req: Request, resp: falcon.asgi.Response, text: str, refused: Refused | None
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


def _lines(purse: Purse) -> Mapping[str, str]:
    """Returns the lines of the choice: the addresses of the book, and none."""
    lines = {
        id: f"{purse.line(each)}{', still waits' if each.waits else ''}"
        for id, each in purse.sendable.items()
    }
    return lines | {"": "Another address" if lines else "The book has no address that can be used"}


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
