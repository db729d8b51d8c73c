"""The methods of withdrawals: the list, and the form of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page, leave_for
from console.ui.pages import only_for
from console.ui.words import errors_of
from console.withdrawals import words
from console.withdrawals.desk.new import PAYS
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.money import plainly
from kit.rpc.errors import Refused, not_found

NETWORKS: Final = ("TRC20", "ERC20", "BEP20", "POLYGON", "TON")
PATH: Final = "/withdrawal-methods"
BOXES: Final = ("memo_allowed", "enabled")
COMPARED: Final = ("code", "name", "network_fee", "min_amount", *BOXES)
"""The values that a form carries, so that two people's changes do not undo each other."""


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
        method = await self._method(code)
        self._show(req, resp, method, was=was_of(method), is_new=False)

    on_head = on_get

    async def on_get_new(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, PAYS)
        self._show(req, resp, pb.WithdrawalMethod(enabled=True), was=dict.fromkeys(COMPARED, ""), is_new=True)

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
            network_fee=plainly(form.line("network_fee", most=50)),
            min_amount=plainly(form.line("min_amount", most=50)),
            memo_allowed=bool(form.text("memo_allowed")),
            enabled=bool(form.text("enabled")),
        )
        was = {name: form.line(f"was:{name}", most=200) for name in COMPARED}
        request = pb.SetWithdrawalMethodRequest(
            method=method, was=None if code and not was["code"] else seen_in(was)
        )
        try:
            await self.deps.withdrawals.SetWithdrawalMethod(request)
        except Refused as refused:
            if refused.reason not in words.MENDABLE | {"EDIT_CONFLICT"}:
                raise
            if refused.reason == "EDIT_CONFLICT" and code:
                was = was_of(await self._method(code))
            self._show(
                req, resp, method, was=was, is_new=not code, refused=refused, errors=errors_of(refused)
            )
            return
        leave_for(resp, PATH, notice="withdrawal-method-set")

    async def _method(self, code: str) -> pb.WithdrawalMethod:
        listed = await self.deps.withdrawals.ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest())
        method = next((each for each in listed.methods if each.code == code), None)
        if method is None:
            raise not_found("NOT_FOUND", "No withdrawal method has this code")
        return method

    def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        method: pb.WithdrawalMethod,
        *,
        was: Mapping[str, str],
        is_new: bool,
        **values: Any,
    ) -> None:
        self.show(
            req, resp, "withdrawal-method", method=method, was=was, is_new=is_new, networks=NETWORKS, **values
        )


def was_of(method: pb.WithdrawalMethod) -> dict[str, str]:
    """Returns the values that a form is made from, as the form carries them; yes or empty for a box."""
    values = {name: getattr(method, name) for name in COMPARED}
    return {
        name: value if isinstance(value, str) else "yes" if value else "" for name, value in values.items()
    }


def seen_in(was: Mapping[str, str]) -> pb.WithdrawalMethod:
    """Returns the method that the form was made from."""
    seen = pb.WithdrawalMethod()
    for name, text in was.items():
        setattr(seen, name, bool(text) if name in BOXES else text)
    return seen
