"""Payment links for any number of payments: their list, the form, and the page with the link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import falcon.asgi

from console.exchange import Request
from console.links.pages import VALID, NewLinkPage, answer_code
from console.list_page import Asked, Found, ListPage
from console.page import Page, leave_for
from console.ui.filters import Tabs
from console.ui.values import iso, word
from console.wiring import Deps
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.money import plainly

STATES: Final = {"": "All", "open": "Open", "expired": "Expired", "canceled": "Canceled"}


class ManyLinksPage(ListPage):
    """/links/many and /links/many.csv: the merchant's links, newest first."""

    link = "/links"
    template = "links-many"
    csv_name = "links-many"
    columns = (
        *("link_id", "created_at", "expires_at", "canceled_at", "status", "amount", "currency_code"),
        *("orders", "purpose", "note", "payments", "payment_link"),
    )
    filters = (Tabs("state", "State", STATES),)

    def __init__(self, deps: Deps, *, public_url: str) -> None:
        super().__init__(deps)
        self._public_url = public_url

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListLinksRequest(
            merchant_id=req.exchange.signed_in.merchant_id, after_link_id=asked.after, limit=asked.limit
        )
        if asked["state"]:
            request.status = pb.LinkStatus.Value(f"LINK_STATUS_{asked['state'].upper()}")
        links = (await self.deps.invoices.ListLinks(request)).links
        return asked.found(links, after=lambda row: row.link_id, public_url=self._public_url)

    def cells(self, row: pb.Link, found: Found) -> Sequence[str]:
        return (
            *(row.link_id, iso(row.created_at), iso(row.expires_at), iso(row.canceled_at)),
            *(word(row, "status"), row.amount, row.currency_code, f"link-{row.code}", row.purpose, row.note),
            *(str(row.payments), f"{self._public_url}/pay/links/{row.link_id}"),
        )


class NewManyLinkPage(NewLinkPage):
    """/links/many/new: the form."""

    template = "links-many-new"
    valid = VALID | {"0": "until it is canceled"}

    async def made(self, merchant_id: str, typed: Mapping[str, str]) -> str:
        request = pb.CreateLinkRequest(
            merchant_id=merchant_id,
            amount=plainly(typed["amount"]),
            currency_code=typed["currency"],
            purpose=typed["purpose"] or None,
            note=typed["note"],
            valid_days=self.days_of(typed),
        )
        return f"/links/many/{(await self.deps.invoices.CreateLink(request)).link.link_id}"


class ManyLinkPage(Page):
    """/links/many/{link_id}: the link, to copy, to open, and as a QR code."""

    link = "/links"

    def __init__(self, deps: Deps, *, public_url: str) -> None:
        super().__init__(deps)
        self._public_url = public_url

    async def on_get(self, req: Request, resp: falcon.asgi.Response, link_id: str) -> None:
        row = await self._link(req, link_id)
        self.show(req, resp, "links-many-link", row=row, url=self._url_of(row))

    on_head = on_get

    async def on_get_qr(self, req: Request, resp: falcon.asgi.Response, link_id: str) -> None:
        answer_code(resp, self._url_of(await self._link(req, link_id)))

    async def on_post_cancel(self, req: Request, resp: falcon.asgi.Response, link_id: str) -> None:
        await self.form(req)
        await self.deps.invoices.CancelLink(pb.CancelLinkRequest(link_id=link_id))
        leave_for(resp, f"/links/many/{link_id}", notice="many-link-canceled")

    def _url_of(self, row: pb.Link) -> str:
        return f"{self._public_url}/pay/links/{row.link_id}"

    async def _link(self, req: Request, link_id: str) -> pb.Link:
        own = req.exchange.signed_in.merchant_id
        request = pb.ListLinksRequest(merchant_id=own, link_id=link_id)
        return (await self.deps.invoices.ListLinks(request)).links[0]
