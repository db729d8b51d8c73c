"""The page of a payment link that makes a fresh invoice for each payment."""

from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

import falcon
import falcon.asgi

from fiatgate.invoices.v1 import invoices_pb2 as pb
from gateway.exchange import Request
from gateway.pay.notices import LINK_NOTICES
from gateway.pay.rendering import answer_page, language_of
from gateway.pay.view import LONG_AMOUNT_CHARACTERS, Brand, brand_of
from gateway.walls.pace import Pace
from gateway.walls.strangers import LINKS
from gateway.wiring import Deps
from kit.base.ids import parse_id
from kit.base.proto import optional
from kit.rpc.errors import Refused, denied, not_found
from kit.web.forms import sent_by_own_page
from kit.web.walls import turned_away
from kit.web.walls.buckets import Buckets

FRESH_PER_MINUTE: Final = 5
"""Invoices of one link that one network may make with this worker."""


@dataclass(frozen=True)
class LinkView:
    """The values of `checkout.html`, for a link."""

    brand: Brand
    merchant_name: str
    amount: str
    currency: str
    purpose: str | None
    is_open: bool
    to_pay: None = None
    part: None = None
    fee: None = None
    refresh: None = None
    outcome: None = None
    state: str = ""

    @property
    def has_long_amount(self) -> bool:
        return len(self.amount) > LONG_AMOUNT_CHARACTERS


class LinkResource:
    """/pay/links/{link_id}: a GET shows what is paid, a POST makes an invoice and redirects to its page."""

    def __init__(self, deps: Deps, pace: Pace) -> None:
        self._checkout = deps.checkout
        self._links = deps.links
        self._strangers = deps.strangers
        self._pages = Buckets(deps.settings.page_requests_per_minute)
        self._fresh = Buckets(FRESH_PER_MINUTE)
        self._pace = pace
        self._is_test = deps.settings.is_test

    async def on_get(self, req: Request, resp: falcon.asgi.Response, link_id: str) -> None:
        id = _known_form(link_id)
        page, language = await self._page(req, id), language_of(req)
        brand = brand_of(page.branding, self._links)
        answer_page(
            req,
            resp,
            "link",
            prefix=self._links.prefix,
            is_test=self._is_test,
            language=language,
            frame_origins=brand.frame_origins,
            brand=f"{self._links.prefix}/pay-brand/{brand.stylesheet}" if brand.stylesheet else None,
            page=self._links.link_page(id),
            view=LinkView(
                brand=brand,
                merchant_name=page.merchant_name,
                amount=page.link.amount,
                currency=page.link.currency_code,
                purpose=optional(page.link, "purpose"),
                is_open=page.link.status == pb.LINK_STATUS_OPEN,
            ),
            notice=language.text(LINK_NOTICES.get((req.get_param("notice") or "").upper(), "")),
        )

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response, link_id: str) -> None:
        id = _known_form(link_id)
        if not sent_by_own_page(req, self._links.origin):
            raise denied("VALIDATION_ERROR", "The form was sent from another site")
        await self._page(req, id)
        if not self._fresh.take(f"{id} {req.exchange.network}"):
            turned_away.count("page")
            raise self._fresh.refusal()
        try:
            made = await self._checkout.PayLink(pb.PayLinkRequest(link_id=id))
        except Refused as refused:
            if refused.reason not in LINK_NOTICES:
                raise
            target = f"{self._links.link_page(id)}?{urlencode({'notice': refused.reason.lower()})}"
        else:
            target = self._links.page(made.invoice_id)
        resp.status = falcon.HTTP_303
        resp.location = target
        resp.set_header("Cache-Control", "no-store")

    async def _page(self, req: Request, id: str) -> pb.GetLinkResponse:
        if not self._pages.take(id):
            turned_away.count("page")
            raise self._pages.refusal(limit_of="page")
        network = req.exchange.network
        await self._pace.turn(network)
        async with self._pace.page(network):
            return await self._strangers.ask(
                LINKS, network, id, lambda: self._checkout.GetLink(pb.GetLinkRequest(link_id=id))
            )


def _known_form(link_id: str) -> str:
    """Returns the id in its canonical form. Raises LINK_NOT_FOUND for a text that is no UUID."""
    known_form = parse_id(link_id)
    if known_form is None:
        raise not_found("LINK_NOT_FOUND", "Payment link not found")
    return str(known_form)
