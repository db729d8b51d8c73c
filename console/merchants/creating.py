"""The form that makes a merchant."""

from __future__ import annotations

from typing import Final

import falcon.asgi

from console.exchange import Request
from console.merchants.merchant import MENDABLE, category_words
from console.options import TEXT_MAX_CHARACTERS
from console.page import Page, leave_for
from console.ui.pages import only_for
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.base.money import fraction_of
from kit.rpc.errors import Refused

FIELDS: Final = ("name", "owner_email", "category_code", "client_share", "callback_url", "active")


class NewMerchantPage(Page):
    """/merchants/new"""

    link = "/merchants"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, frozenset({"admin"}))
        given = dict.fromkeys(FIELDS, "") | {"owner_email": req.get_param("owner") or "", "client_share": "0"}
        await self._show(req, resp, given)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        typed = {field: form.prose(field, most=TEXT_MAX_CHARACTERS) for field in FIELDS}
        request = pb.CreateMerchantRequest(
            name=typed["name"],
            owner_email=typed["owner_email"],
            category_code=typed["category_code"] or None,
            client_share=fraction_of(typed["client_share"]) or None,
            callback_url=typed["callback_url"] or None,
            active=bool(typed["active"]),
        )
        try:
            made = (await self.deps.merchants.CreateMerchant(request)).merchant
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, typed, refused=refused)
        else:
            leave_for(resp, f"/merchants/{made.merchant_id}", notice="merchant-created")

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: dict[str, str],
        *,
        refused: Refused | None = None,
    ) -> None:
        listed = await self.deps.merchants.ListCategories(pb.ListCategoriesRequest())
        words = category_words(listed.categories, typed["category_code"])
        self.show(req, resp, "merchant-new", refused=refused, typed=typed, categories=words)
