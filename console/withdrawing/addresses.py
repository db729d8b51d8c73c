"""The address book of the session's merchant: the only addresses that its members can withdraw to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from datetime import timedelta
from typing import Final

import falcon.asgi

from console.exchange import Request
from console.file_page import FilePage, Lines
from console.page import leave_for
from console.ui.values import age_text, iso
from console.words.withdrawals import errors_of
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.rpc.errors import Refused

FIELDS: Final = ("method", "address", "memo", "name")
MENDABLE: Final = frozenset(
    {
        "MERCHANT_BLOCKED",
        "OWNER_BLOCKED",
        "VALIDATION_ERROR",
        "WITHDRAWAL_METHOD_NOT_FOUND",
        "WITHDRAWAL_ADDRESS_INVALID",
        "WITHDRAWAL_ADDRESS_EXISTS",
        "WITHDRAWAL_ADDRESSES_LIMITED",
    }
)


class AddressesPage(FilePage):
    """/addresses and /addresses.csv: newest first, and the form that adds one."""

    link = "/addresses"
    csv_name = "addresses"
    columns = (
        *("address_id", "name", "withdrawal_method_id", "network", "address", "address_memo", "added_by"),
        *("created_at", "usable_at"),
    )

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._show(req, resp, dict.fromkeys(FIELDS, ""))

    on_head = on_get

    async def lines(self, req: Request, **params: str) -> AsyncGenerator[Lines]:
        yield [
            (
                *(each.address_id, each.name, str(each.withdrawal_method_id), each.network, each.address),
                *(each.address_memo, each.added_by, iso(each.created_at), iso(each.usable_at)),
            )
            for each in (await self._book(req)).addresses
        ]

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        typed = {name: form.line(name, most=200) for name in FIELDS}
        method = typed["method"]
        request = pb.AddAddressRequest(
            merchant_id=req.exchange.signed_in.merchant_id,
            withdrawal_method_id=int(method) if method.isdecimal() and len(method) < 10 else 0,
            address=typed["address"],
            name=typed["name"],
        )
        if typed["memo"]:
            request.address_memo = typed["memo"]
        try:
            made = (await self.deps.withdrawals.AddAddress(request)).address
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, typed, refused=refused)
        else:
            leave_for(resp, "/addresses", notice=notice_of_added(made))

    async def on_post_remove(self, req: Request, resp: falcon.asgi.Response, address_id: str) -> None:
        form = await self.form(req)
        change = self.deps.withdrawals.RemoveAddress(pb.RemoveAddressRequest(address_id=address_id))
        back = "/" if form.text("from") == "home" else "/addresses"
        gone = ("WITHDRAWAL_ADDRESS_NOT_FOUND",)
        await self.leave_after(resp, change, back, notice="address-removed", mendable=gone)

    async def _book(self, req: Request) -> pb.ListAddressesResponse:
        request = pb.ListAddressesRequest(merchant_id=req.exchange.signed_in.merchant_id)
        return await self.deps.withdrawals.ListAddresses(request)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: Mapping[str, str],
        *,
        refused: Refused | None = None,
    ) -> None:
        book, listed = await asyncio.gather(
            self._book(req), self.deps.withdrawals.ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest())
        )
        self.show(
            req,
            resp,
            "addresses",
            refused=refused,
            book=book.addresses,
            wait=age_text(timedelta(seconds=book.wait_seconds)) if book.wait_seconds else "",
            codes={each.method_id: each.code for each in listed.methods},
            words={
                str(each.method_id): f"{each.name} ({each.code})" for each in listed.methods if each.enabled
            },
            typed=typed,
            csv=self.file(req),
            **({"errors": errors_of(refused)} if refused else {}),
        )


def notice_of_added(address: pb.WithdrawalAddress) -> str:
    """Returns the notice about an address that was just added."""
    return "address-added" if address.waits else "address-added-usable"
