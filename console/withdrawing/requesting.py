"""The request of a withdrawal by a member: a form, the same as a sentence to agree to, and the request."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Final

import falcon.asgi

from console.exchange import Request
from console.ui.pages import only_for
from console.withdrawal_page import WithdrawalPage
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.money import usdt_text
from kit.rpc.errors import Refused
from kit.rpc.values import invalid

FEE_CHANGED: Final = "The network’s fee is another one by now, and nothing was requested. Look at it again."


class RequestPage(WithdrawalPage):
    """/withdrawals/new?address=…"""

    roles = frozenset({"owner", "finance"})
    fields = ("address", "amount", "fee", "request_key")
    mendable = frozenset(
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
    again = "withdrawing-again"
    fresh = "withdrawal-requested"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, self.roles)
        await self.ask(req, resp, self.new(address=req.get_param("address") or ""))

    on_head = on_get

    async def made(self, req: Request, typed: Mapping[str, str]) -> pb.Withdrawal:
        request = pb.RequestWithdrawalRequest(
            merchant_id=req.exchange.signed_in.merchant_id,
            address_id=typed["address"],
            amount=typed["amount"],
            network_fee=typed["fee"],
            request_key=typed["request_key"],
        )
        return (await self.deps.withdrawals.RequestWithdrawal(request)).withdrawal

    async def preview(self, req: Request, resp: falcon.asgi.Response, typed: Mapping[str, str]) -> None:
        purse = await self.purse(req.exchange.signed_in.merchant_id)
        address = purse.sendable.get(typed["address"])
        if address is None or address.waits:
            raise invalid("address", "choose an address of the list")
        method = purse.methods[address.withdrawal_method_id]
        amount = purse.amount(typed["amount"], method)
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

    async def ask(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: Mapping[str, str],
        refused: Refused | None = None,
    ) -> None:
        purse = await self.purse(req.exchange.signed_in.merchant_id)
        values = self.after(typed, refused)
        if refused is not None and refused.reason == "EDIT_CONFLICT":
            values |= {"problem": FEE_CHANGED, "errors": {}}
        self.show(
            req,
            resp,
            "withdrawing",
            refused=refused,
            purse=purse,
            waiting=[each for each in purse.book.values() if each.waits],
            words={id: purse.line(each) for id, each in purse.sendable.items() if not each.waits},
            **values,
        )
