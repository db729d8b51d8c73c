"""Payment links by hand: their list, the form that creates an invoice, and the page with its link."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

import falcon.asgi

from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page, leave_for
from console.ui.filters import Tabs, Text
from console.ui.values import ago, iso, number_of, word
from console.ui.words import errors_of, sentence_for
from console.wiring import Deps
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.merchants.v1 import merchants_pb2
from kit.base.codes import new_code
from kit.base.ids import parse_id
from kit.base.money import amount_text, parse_decimal, plainly
from kit.base.proto import most_of
from kit.rpc.errors import Refused, is_away, not_found
from kit.web.qr import svg_of

TYPED: Final = ("amount", "currency", "valid_days", "purpose", "customer", "order", "note", "made_order")
"""The fields of the form."""
FIELDS: Final = {
    "amount": "amount",
    "currency_code": "currency",
    "customer_id": "customer",
    "external_id": "order",
    "purpose": "purpose",
    "note": "note",
    "valid_days": "valid_days",
}
"""Fields of the request, as the form names them."""
PROBLEMS: Final[Mapping[str, tuple[str, str]]] = {
    "CURRENCY_INVALID": ("currency", "Your invoices can’t have this currency."),
    "AMOUNT_BELOW_MIN": ("amount", "The least amount is {minimum} {currency}."),
    "AMOUNT_ABOVE_MAX": ("amount", "The largest amount is {maximum} {currency}."),
    "PAYMENT_METHOD_NOT_FOUND": ("amount", "No payment method takes this amount in {currency}."),
    "DUPLICATE_EXTERNAL_ID": ("order", "You have an invoice of this order already. Give another order."),
    "PENDING_INVOICE_EXISTS": (
        "customer",
        "This customer has an invoice that waits for payment. It must be paid, be canceled or expire first.",
    ),
    "CUSTOMER_RATE_LIMIT": (
        "customer",
        "This customer has too many unpaid invoices. The next one can be made in {wait}.",
    ),
    "NO_AVAILABLE_REQUISITES": (
        "",
        "No account is free to take this payment now. Try again in a few minutes.",
    ),
    "DEALS_SYSTEM_DISABLED": (
        "",
        "No new payment can be taken in this currency for the moment. Try again later.",
    ),
    "MERCHANT_NOT_ACTIVE": ("", "You are not activated yet. Ask the operator to do it."),
    "MERCHANT_BLOCKED": ("", "Your account is banned, so no payment can be taken. Ask the operator."),
    "OWNER_BLOCKED": ("", "Your account’s owner is blocked, so no payment can be taken. Ask the operator."),
}
"""By the reason of the refusal: the field of the form that it is about, and the sentence with facts of the refusal."""
STATES: Final = {
    "": "All",
    "pending": "Open",
    "success": "Paid",
    "expired": "Expired",
    "canceled": "Canceled",
    "fail": "Failed",
}
VALID: Final = {
    "1": "1 day",
    "3": "3 days",
    "7": "7 days",
    "30": "30 days",
    "90": "90 days",
    "0": "as an invoice of a program",
}
CANCEL_REFUSED: Final = {"INVOICE_FINISHED": "invoice_finished", "DEAL_STATE_CONFLICT": "link_marked_paid"}
"""The sentence for each refusal of a cancellation."""
CURRENCIES_REFUSED: Final = (
    "No currency can be paid in now, because there are no fresh rates. Try again later."
)
SVG_HEADERS: Final = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Content-Security-Policy", "default-src 'none'"),
)


class LinksPage(ListPage):
    """/links and /links.csv: the links of the merchant's members, newest first."""

    link = "/links"
    template = "links"
    csv_name = "links"
    columns = (
        *(
            "invoice_id",
            "created_at",
            "expires_at",
            "finished_at",
            "status",
            "amount",
            "final_amount",
            "currency_code",
        ),
        *("external_id", "customer_id", "purpose", "payment_link"),
    )
    filters = (
        Tabs("state", "State", STATES),
        Text("order", "Order", of="external_id"),
        Text("customer", "Customer", of="customer_id"),
    )

    def __init__(self, deps: Deps, *, public_url: str) -> None:
        super().__init__(deps)
        self._public_url = public_url

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListAllInvoicesRequest(
            merchant_id=req.exchange.signed_in.merchant_id,
            by_hand=True,
            external_id=asked["order"],
            customer_id=asked["customer"],
            after_invoice_id=asked.after,
            limit=asked.limit,
        )
        if asked["state"]:
            request.status = pb.InvoiceStatus.Value(f"INVOICE_STATUS_{asked['state'].upper()}")
        answer = await self.deps.deals.ListAllInvoices(request)
        values: dict[str, Any] = {"states": STATES, "public_url": self._public_url}
        if answer.reached_invoice_id:
            return Found(answer.invoices, answer.reached_invoice_id, values=values)
        return asked.found(answer.invoices, after=lambda row: row.invoice_id, **values)

    def cells(self, row: pb.Invoice, found: Found) -> Sequence[str]:
        return (
            *(row.invoice_id, iso(row.created_at), iso(row.expires_at), iso(row.finished_at)),
            *(
                word(row, "status"),
                row.amount,
                row.final_amount,
                row.currency_code,
                row.external_id,
                row.customer_id,
            ),
            *(row.purpose, f"{self._public_url}/pay/{row.invoice_id}"),
        )


class NewLinkPage(Page):
    """/links/new: the form. It makes one invoice, however often it is sent."""

    link = "/links"
    template = "links-new"
    valid: Mapping[str, str] = VALID

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        typed = dict.fromkeys(TYPED, "") | {"made_order": f"link-{new_code()}", "valid_days": "7"}
        await self._show(req, resp, typed)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        typed = {name: form.line(name, most=MOST_CHARACTERS) for name in TYPED}
        try:
            path = await self.made(req.exchange.signed_in.merchant_id, typed)
        except Refused as refused:
            if refused.reason not in PROBLEMS and refused.reason != "VALIDATION_ERROR":
                raise
            await self._show(req, resp, typed, refused)
        else:
            leave_for(resp, path)

    async def made(self, merchant_id: str, typed: Mapping[str, str]) -> str:
        """Makes the link and returns the path of its page."""
        request = pb.CreateInvoiceByHandRequest(
            merchant_id=merchant_id,
            amount=plainly(typed["amount"]),
            currency_code=typed["currency"],
            customer_id=typed["customer"],
            external_id=typed["order"] or typed["made_order"],
            purpose=typed["purpose"] or None,
            note=typed["note"],
            valid_days=self.days_of(typed),
        )
        try:
            invoice_id = (await self.deps.invoices.CreateInvoiceByHand(request)).invoice.invoice_id
        except Refused as refused:
            invoice_id = await self._made_before(request, refused)
            if not invoice_id:
                raise
        return f"/links/{invoice_id}"

    def days_of(self, typed: Mapping[str, str]) -> int:
        return number_of(typed["valid_days"]) if typed["valid_days"] in self.valid else 0

    async def _made_before(self, request: pb.CreateInvoiceByHandRequest, refused: Refused) -> str:
        """Returns the id of the invoice that the same form has made; empty: there is none."""
        if refused.reason != "DUPLICATE_EXTERNAL_ID":
            return ""
        asked = pb.GetInvoiceRequest(
            merchant_id=request.merchant_id, invoice_ref=refused.metadata["invoice_id"]
        )
        made = (await self.deps.invoices.GetInvoice(asked)).invoice
        is_same = not made.key_id and _wish(made) == _wish(request)
        return made.invoice_id if is_same else ""

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: Mapping[str, str],
        refused: Refused | None = None,
    ) -> None:
        merchant_id = req.exchange.signed_in.merchant_id
        asked = merchants_pb2.GetMerchantRequest(merchant_id=merchant_id)
        merchant = (await self.deps.merchants.GetMerchant(asked)).merchant
        problem, currencies = "", []
        try:
            offers = await self.deps.catalog.ListMerchantCurrencies(
                catalog_pb2.ListMerchantCurrenciesRequest(merchant=merchant)
            )
            currencies = [each.currency for each in offers.currencies]
        except Refused as why:
            if is_away(why):
                raise
            problem = CURRENCIES_REFUSED
        shown: dict[str, Any] = {"problem": problem} if problem else {}
        if refused is not None:
            shown = _explained(refused)
        self.show(
            req,
            resp,
            self.template,
            typed=typed,
            valid=self.valid,
            refused=refused,
            words={each.code: each.code for each in currencies},
            merchant=merchant,
            other=refused.metadata.get("invoice_id", "") if refused else "",
            most=MOST,
            **shown,
        )


MOST: Final = {
    form: most_of(pb.CreateInvoiceByHandRequest, field)
    for field, form in FIELDS.items()
    if form in ("purpose", "customer", "order", "note")
}
MOST_CHARACTERS: Final = max(MOST.values()) + 1
"""One more than the service takes: its refusal names the bound."""


class LinkPage(Page):
    """/links/{invoice_id}: the payment link of an invoice, to copy, to open, and as a QR code."""

    link = "/links"

    def __init__(self, deps: Deps, *, public_url: str) -> None:
        super().__init__(deps)
        self._public_url = public_url

    async def on_get(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        invoice = await self._invoice(req, invoice_id)
        url = self._url_of(invoice)
        self.show(req, resp, "links-link", invoice=invoice, states=STATES, url=url)

    on_head = on_get

    async def on_get_qr(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        """Answers with the QR code of the link, as a picture."""
        invoice = await self._invoice(req, invoice_id)
        answer_code(resp, self._url_of(invoice))

    async def on_post_cancel(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        await self.form(req)
        path = f"/links/{invoice_id}"
        try:
            await self.deps.invoices.CancelInvoice(pb.CancelInvoiceRequest(invoice_id=invoice_id))
        except Refused as refused:
            if refused.reason not in CANCEL_REFUSED:
                raise
            leave_for(resp, path, problem=CANCEL_REFUSED[refused.reason])
        else:
            leave_for(resp, path, notice="link-canceled")

    def _url_of(self, invoice: pb.Invoice) -> str:
        return f"{self._public_url}/pay/{invoice.invoice_id}"

    async def _invoice(self, req: Request, invoice_id: str) -> pb.Invoice:
        """Returns the merchant's invoice. Raises INVOICE_NOT_FOUND, also for the order of one."""
        if parse_id(invoice_id) is None:
            raise not_found("INVOICE_NOT_FOUND", "No such invoice")
        own = req.exchange.signed_in.merchant_id
        request = pb.GetInvoiceRequest(merchant_id=own, invoice_ref=invoice_id)
        return (await self.deps.invoices.GetInvoice(request)).invoice


def answer_code(resp: falcon.asgi.Response, url: str) -> None:
    """Answers with the QR code of a link, as a picture."""
    resp.content_type = "image/svg+xml"
    resp.data = svg_of(url)
    resp.set_headers(SVG_HEADERS)


def _wish(of: pb.Invoice | pb.CreateInvoiceByHandRequest) -> tuple[Decimal, str, str, str]:
    """Returns what a person asks a customer for."""
    return parse_decimal(of.amount), of.currency_code, of.customer_id, of.purpose


def _explained(refused: Refused) -> dict[str, Any]:
    """Returns the sentence about the refusal, and the field that it stands at."""
    if refused.reason == "VALIDATION_ERROR":
        errors = {FIELDS[field]: text for field, text in errors_of(refused).items() if field in FIELDS}
        return {"problem": sentence_for(refused.reason, refused), "errors": errors}
    (field, words), facts = PROBLEMS[refused.reason], dict(refused.metadata)
    for bound in ("minimum", "maximum"):
        facts[bound] = amount_text(facts.get(bound, ""), facts.get("currency", ""))
    next_at = facts.get("next_allowed_at", "")
    sentence = words.format_map({**facts, "wait": ago(datetime.fromisoformat(next_at)) if next_at else ""})
    return {"problem": sentence, "errors": {field: sentence} if field else {}}
