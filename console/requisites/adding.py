"""New requisites: one, or several from a pasted list that is checked before anything is added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.page import Page, leave_for
from console.requisites.pages import methods_of
from console.ui.pages import only_for
from console.ui.values import queried
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.pasted import PastedRow, pasted_rows
from kit.rpc.errors import Refused, invalid

COLUMNS: Final = ("account", "holder", "bank", "max_deals")
TEXT_MAX_CHARACTERS: Final = 128
LIST_MAX_CHARACTERS: Final = 24 * 1024
"""A form with a list has at most 256 KiB, in which a letter takes up to nine bytes."""
MENDABLE: Final = frozenset({"VALIDATION_ERROR"})
NEW: Final = {"account": "", "holder": "", "bank": "", "max_deals": "100"}
ADDED_BY: Final = frozenset({"desk", "admin"})


class NewRequisitePage(Page):
    """/new-requisite?method=…: one account."""

    link = "/requisites"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, ADDED_BY)
        await self._show(req, resp, req.get_param("method") or "", NEW)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        typed = {name: form.line(name, most=TEXT_MAX_CHARACTERS) for name in COLUMNS}
        method = form.line("method_code", most=TEXT_MAX_CHARACTERS)
        # As a list of one: that call refuses an account that the method has, so a form that is sent twice adds one.
        request = pb.AddRequisitesRequest(method_code=method, requisites=[new_from(typed)])
        try:
            (added,) = (await self.deps.deals.AddRequisites(request)).requisites
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, method, typed, refused=refused)
        else:
            leave_for(resp, f"/requisites/{added.requisite_id}", notice="requisite-added")

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        method: str,
        values: Mapping[str, str],
        *,
        refused: Refused | None = None,
    ) -> None:
        methods = await methods_of(self)
        self.show(req, resp, "requisite-new", refused=refused, method=method, values=values, methods=methods)


@dataclass(frozen=True)
class Line:
    """A line of the pasted list as it would be added; `problem` is empty for a right one."""

    number: int
    cells: Mapping[str, str]
    account: str
    field: str
    problem: str


class SeveralPage(Page):
    """/new-requisites?method=…: the list is checked line by line, then all are added, or none."""

    link = "/requisites"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, ADDED_BY)
        await self._show(req, resp, req.get_param("method") or "", "")

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Shows what would be added, and which lines are wrong. Changes nothing."""
        method, text = await self._typed(req)
        await self._preview(req, resp, method, text)

    async def on_post_add(self, req: Request, resp: falcon.asgi.Response) -> None:
        method, text = await self._typed(req)
        try:
            given = [new_from(row.cells) for row in rows_of(text)]
            request = pb.AddRequisitesRequest(method_code=method, requisites=given)
            added = (await self.deps.deals.AddRequisites(request)).requisites
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._preview(req, resp, method, text)
        else:
            notice = "requisite-added" if len(added) == 1 else "requisites-added"
            leave_for(resp, queried("/requisites", {"method": method}), notice=notice)

    async def _typed(self, req: Request) -> tuple[str, str]:
        form = await self.form(req)
        text = form.text("list").replace("\x00", "")
        return form.line("method_code", most=TEXT_MAX_CHARACTERS), text

    async def _preview(self, req: Request, resp: falcon.asgi.Response, method: str, text: str) -> None:
        try:
            rows = rows_of(text)
            given = [new_from(row.cells) for row in rows]
            request = pb.CheckRequisitesRequest(method_code=method, requisites=given)
            checked = (await self.deps.deals.CheckRequisites(request)).requisites
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, method, text, refused=refused)
        else:
            lines = [
                Line(row.line, row.cells, each.account, each.field, each.problem)
                for row, each in zip(rows, checked, strict=True)
            ]
            await self._show(req, resp, method, text, lines=lines)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        method: str,
        text: str,
        *,
        lines: Sequence[Line] = (),
        refused: Refused | None = None,
    ) -> None:
        values: dict[str, Any] = {
            "method": method,
            "text": text,
            "lines": lines,
            "wrong": sum(bool(each.problem) for each in lines),
            "methods": await methods_of(self),
        }
        self.show(req, resp, "requisites-new", refused=refused, **values)


def rows_of(text: str) -> list[PastedRow]:
    """Returns the rows of the pasted list. Raises VALIDATION_ERROR, also for a list that is too long.

    A list that is cut may end in half an account.
    """
    if len(text) > LIST_MAX_CHARACTERS:
        message = f"it has {len(text):,} characters, of at most {LIST_MAX_CHARACTERS:,}: add it in parts"
        raise invalid("VALIDATION_ERROR", message, field="list")
    try:
        rows = pasted_rows(text, COLUMNS)
    except ValueError as error:
        raise invalid("VALIDATION_ERROR", str(error), field="list") from None
    if not rows:
        raise invalid("VALIDATION_ERROR", "there is no account in it", field="list")
    return rows


def new_from(cells: Mapping[str, str]) -> pb.NewRequisite:
    """Returns the account that the cells describe. A number that is none becomes -1, which is refused by its field."""
    text = cells["max_deals"]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 8 else -1 if text else 0
    return pb.NewRequisite(
        account=cells["account"], holder=cells["holder"], bank=cells["bank"] or None, max_deals=number
    )
