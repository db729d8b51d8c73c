"""The methods of withdrawals: the list, and the form of one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import falcon.asgi

from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page, leave_for
from console.ui.pages import only_for
from console.withdrawals import words
from console.withdrawals.one import PAYS
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.rpc.errors import Refused, not_found

NETWORKS: Final = ("TRC20", "ERC20", "BEP20", "POLYGON", "TON")
PATH: Final = "/withdrawal-methods"


class MethodsPage(ListPage):
    """/withdrawal-methods: all of them, by id."""

    link = PATH
    template = "withdrawal-methods"
    csv_name = "withdrawal-methods"
    columns = ("method_id", "code", "network", "name", "network_fee", "min_amount", "memo_allowed", "enabled")

    async def rows(self, req: Request, asked: Asked) -> Found:
        listed = await self.deps.withdrawals.ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest())
        return Found(listed.methods)

    def cells(self, row: pb.WithdrawalMethod, found: Found) -> Sequence[str]:
        return tuple(str(getattr(row, name)) for name in self.columns)


class MethodPage(Page):
    """/withdrawal-methods/{code} and /withdrawal-methods/new."""

    link = PATH

    async def on_get(self, req: Request, resp: falcon.asgi.Response, code: str) -> None:
        only_for(req, PAYS)
        listed = await self.deps.withdrawals.ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest())
        method = next((each for each in listed.methods if each.code == code), None)
        if method is None:
            raise not_found("NOT_FOUND", "No withdrawal method has this code")
        self.show(req, resp, "withdrawal-method", method=method, is_new=False, networks=NETWORKS)

    on_head = on_get

    async def on_get_new(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, PAYS)
        method = pb.WithdrawalMethod(enabled=True)
        self.show(req, resp, "withdrawal-method", method=method, is_new=True, networks=NETWORKS)

    on_head_new = on_get_new

    async def on_post(self, req: Request, resp: falcon.asgi.Response, code: str) -> None:
        await self._set(req, resp, code)

    async def on_post_new(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._set(req, resp, "")

    async def _set(self, req: Request, resp: falcon.asgi.Response, code: str) -> None:
        form = await self.form(req)
        method = pb.WithdrawalMethod(
            code=code or form.line("code", most=100),
            network=form.text("network"),
            name=form.line("name", most=200),
            network_fee=form.line("network_fee", most=50),
            min_amount=form.line("min_amount", most=50),
            memo_allowed=bool(form.text("memo_allowed")),
            enabled=bool(form.text("enabled")),
        )
        try:
            await self.deps.withdrawals.SetWithdrawalMethod(pb.SetWithdrawalMethodRequest(method=method))
        except Refused as refused:
            if refused.reason not in words.MENDABLE:
                raise
            field = refused.metadata.get("field", "").removeprefix("method.")
            self.show(
                req,
                resp,
                "withdrawal-method",
                refused=refused,
                errors={field: f"{refused.message.rstrip('.')}."},
                method=method,
                is_new=not code,
                networks=NETWORKS,
            )
            return
        leave_for(resp, PATH, notice="withdrawal-method-set")
