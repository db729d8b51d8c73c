"""The settings of the session's merchant, in groups, beside the customer's page."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.options import (
    LATE_MONEY,
    Group,
    change_of,
    logo_of,
    typed_in,
    values_of,
    was_in,
)
from console.page import Page, leave_for
from console.settings.preview import is_colour, preview_of
from console.ui.words import FIELDS
from console.words.late_money import POLICIES
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.merchants.v1 import merchants_pb2 as pb
from kit.rpc.errors import Refused, invalid, not_found

CHANGERS: Final = frozenset({"owner", "developer"})
MENDABLE: Final = frozenset({"VALIDATION_ERROR", "EDIT_CONFLICT"})
GROUPS: Final[Mapping[str, Group]] = {
    each.name: each
    for each in (
        Group(
            "shown",
            "The payment page",
            "Pages that are open show a change within seconds.",
            ("colour", "frame_origins"),
        ),
        Group(
            "addresses",
            "Web addresses",
            "For invoices that name none of their own. A webhook that was made keeps its address.",
            ("callback_url", "success_url", "fail_url"),
        ),
    )
}


class OwnMerchant(Page):
    """The base of the pages of the session's merchant."""

    link = "/settings"

    async def merchant(self, req: Request) -> pb.Merchant:
        """Returns the merchant of the session."""
        request = pb.GetMerchantRequest(merchant_id=req.exchange.signed_in.merchant_id)
        return (await self.deps.merchants.GetMerchant(request)).merchant

    def show_framing(self, req: Request, resp: falcon.asgi.Response, template: str, **values: Any) -> None:
        """Answers with a page that shows the preview, which is a page of this surface, in a frame."""
        self.show(req, resp, template, **values)
        policy = resp.get_header("Content-Security-Policy")
        resp.set_header("Content-Security-Policy", f"{policy}; frame-src 'self'")


class SettingsPage(OwnMerchant):
    """/settings"""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._show(req, resp)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Changes the settings of one group that differ from what the form was made from. With the button `preview` it
        only shows what was typed.
        """
        form = await self.form(req)
        group = GROUPS.get(form.text("group"))
        if group is None:
            raise not_found("NOT_FOUND", "There is no such group of settings")
        typed, was = typed_in(form, group.fields), was_in(form, group.fields)
        if form.text("preview"):
            await self._show(req, resp, typed=typed, was=was)
            return
        if typed.get("colour") and not is_colour(typed["colour"]):  # before the question for a step-up
            refused = invalid("VALIDATION_ERROR", "expected a colour such as #1d5bb8", field="colour")
            await self._show(req, resp, refused=refused, typed=typed, was=was)
            return
        request = change_of(pb.ConfigureOwnMerchantRequest, req.exchange.signed_in.merchant_id, typed, was)
        change = request and self.deps.merchants.ConfigureOwnMerchant(request)
        await self._leave_after(req, resp, change, typed=typed, was=was)

    async def on_post_late_money(self, req: Request, resp: falcon.asgi.Response) -> None:
        """Sets what is done with money that comes late."""
        form = await self.form(req)
        typed, was = typed_in(form, LATE_MONEY.fields), was_in(form, LATE_MONEY.fields)
        request = change_of(pb.SetLateMoneyRequest, req.exchange.signed_in.merchant_id, typed, was)
        change = request and self.deps.merchants.SetLateMoney(request)
        await self._leave_after(req, resp, change, typed=typed, was=was)

    async def _leave_after(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        change: Awaitable[object] | None,
        *,
        typed: Mapping[str, str],
        was: Mapping[str, str],
    ) -> None:
        """Leaves for the settings after the change; None when nothing differs. Shows a form that was refused."""
        if change is None:
            leave_for(resp, "/settings", notice="merchant-unchanged")
            return
        try:
            await change
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, refused=refused, typed=typed, was=was)
        else:
            leave_for(resp, "/settings", notice="merchant-changed")

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        *,
        refused: Refused | None = None,
        typed: Mapping[str, str] | None = None,
        was: Mapping[str, str] | None = None,
    ) -> None:
        """Shows the settings; a form that was refused or previewed with what was typed, and still made from what it was
        made from, but for the setting that another person changed: the next save may replace its present value.
        """
        merchant = await self.merchant(req)
        try:
            request = catalog_pb2.ListMethodOffersRequest(merchant=merchant)
            answer = await self.deps.catalog.ListMethodOffers(request)
        except Refused:  # without a category no method is offered; the page is there while catalog is away
            answer = catalog_pb2.ListMethodOffersResponse()
        now = values_of(merchant)
        values = now | dict(typed or {})
        conflict = refused.metadata["field"] if refused and refused.reason == "EDIT_CONFLICT" else ""
        logo = logo_of(merchant)
        self.show_framing(
            req,
            resp,
            "settings",
            refused=refused,
            merchant=merchant,
            groups=(*GROUPS.values(), LATE_MONEY),
            late_money=POLICIES,
            offers=answer.offers,
            labels=FIELDS,
            values=values,
            was=now | {field: text for field, text in (was or {}).items() if field != conflict},
            logo=logo,
            preview=preview_of(values["colour"], logo),
        )
