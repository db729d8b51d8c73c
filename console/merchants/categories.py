"""Categories and their commission."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

import falcon.asgi

from console.exchange import Request
from console.file_page import FilePage, Lines
from console.page import leave_for
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.base.money import fraction_of, percent_of
from kit.rpc.errors import Refused

TEXT_MAX_CHARACTERS: Final = 128
MENDABLE: Final = frozenset({"VALIDATION_ERROR", "EDIT_CONFLICT"})

KEPT: Final = "kept"
RETURNED: Final = "returned"
REFUNDS: Final = {KEPT: "stays with the operator", RETURNED: "comes back to the merchant"}
"""The merchant's commission when a payment is refunded."""


class CategoriesPage(FilePage):
    """/categories: by code; ?code=… has the form of that one open."""

    link = "/categories"
    csv_name = "categories"
    columns = ("code", "commission", "refunds_return_commission")

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._show(req, resp, code=req.get_param("code") or "")

    on_head = on_get

    async def lines(self, req: Request, **params: str) -> AsyncGenerator[Lines]:
        answer = await self.deps.merchants.ListCategories(pb.ListCategoriesRequest())
        yield [
            (each.code, each.commission, "yes" if each.refunds_return_commission else "no")
            for each in answer.categories
        ]

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Makes a category, or changes the one that the form was made from (`was`)."""
        form = await self.form(req)
        code = form.prose("code", most=TEXT_MAX_CHARACTERS)
        commission = form.prose("commission", most=TEXT_MAX_CHARACTERS)
        was = form.prose("was", most=TEXT_MAX_CHARACTERS)
        returned, returned_was = form.text("refunds") or KEPT, form.text("was_refunds") or KEPT
        request = pb.SetCategoryRequest(
            code=code,
            commission=fraction_of(commission),
            was_commission=was,
            refunds_return_commission=None if returned == returned_was else returned == RETURNED,
        )
        try:
            await self.deps.merchants.SetCategory(request)
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, code=code, commission=commission, refunds=returned, refused=refused)
        else:
            leave_for(resp, "/categories", notice="category-set")

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        *,
        code: str,
        commission: str | None = None,
        refunds: str | None = None,
        refused: Refused | None = None,
    ) -> None:
        categories = (await self.deps.merchants.ListCategories(pb.ListCategoriesRequest())).categories
        edited = next((each for each in categories if each.code == code), None)
        self.show(
            req,
            resp,
            "categories",
            refused=refused,
            categories=categories,
            csv=self.file(req),
            edited=edited,
            code=code,
            commission=commission
            if commission is not None
            else percent_of(edited.commission)
            if edited
            else "",
            refunds=_refunds(edited) if refunds is None else refunds,
            was_refunds=_refunds(edited),
            refund_words=REFUNDS,
        )


def _refunds(category: pb.Category | None) -> str:
    return RETURNED if category and category.refunds_return_commission else KEPT
