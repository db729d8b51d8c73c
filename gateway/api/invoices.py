"""Create, get, list and cancel invoices (docs/api.md#create-invoice)."""

from __future__ import annotations  # the asynchronous stubs exist for the type checker only

from typing import TYPE_CHECKING, Any, Final

import falcon
import falcon.asgi

from fiatgate.invoices.v1 import invoices_pb2 as pb
from gateway.api.paging import in_the_list, page_from, page_to_json
from gateway.api.references import invoice_ref_from
from gateway.exchange import Exchange, Request
from gateway.json.body import CreateInvoice, create_invoice_from, no_other_than_json
from gateway.json.query import Query, no_query
from gateway.json.replies import optional_time_text, time_text
from gateway.links import Links
from gateway.walls.strangers import PAYMENTS
from gateway.wiring import Deps
from kit.base.proto import most_of, optional, timestamp_from
from kit.web.replies import reply

if TYPE_CHECKING:
    from fiatgate.invoices.v1.invoices_pb2_grpc import InvoicesServiceAsyncStub

STATUS_NAMES: Final = {
    pb.INVOICE_STATUS_PENDING: "pending",
    pb.INVOICE_STATUS_SUCCESS: "success",
    pb.INVOICE_STATUS_FAIL: "fail",
    pb.INVOICE_STATUS_EXPIRED: "expired",
    pb.INVOICE_STATUS_CANCELED: "canceled",
}
STATUSES: Final = {name: status for status, name in STATUS_NAMES.items()}

DEAL_STATUS_NAMES: Final = {
    pb.DEAL_STATUS_PENDING: "pending",
    pb.DEAL_STATUS_COMPLETED: "completed",
    pb.DEAL_STATUS_CANCELED: "canceled",
    pb.DEAL_STATUS_FAILED: "failed",
    pb.DEAL_STATUS_APPEAL: "appeal",
    pb.DEAL_STATUS_EXPIRED: "expired",
}

ORDERS: Final = {"desc": pb.SORT_ORDER_DESC, "asc": pb.SORT_ORDER_ASC}


class CreateInvoiceResource:
    """POST /api/v1/create-invoice. One call, and one for the key when its lease has ended."""

    def __init__(self, deps: Deps) -> None:
        self._invoices = deps.invoices
        self._links = deps.links
        self._marked = deps.marked
        self._strangers = deps.strangers
        self._http_callbacks = deps.settings.webhook_allow_private

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        no_query(req.query_string)
        await req.exchange.receive_body()
        wanted = create_invoice_from(req, http_callbacks=self._http_callbacks)
        answer = await self._invoices.CreateInvoice(create_request_from(wanted, req.exchange))
        invoice = answer.invoice
        self._strangers.learn(PAYMENTS, invoice.invoice_id)
        reply(resp, self._marked(created_invoice_to_json(invoice, self._links)), status=201)
        resp.set_header("Location", self._links.invoice(invoice.invoice_id))


class InvoiceResource:
    """GET /api/v1/invoices/{invoice_ref}, GET /api/v1/invoices and POST /api/v1/invoices/{invoice_ref}/cancel."""

    def __init__(self, deps: Deps) -> None:
        self._invoices = deps.invoices
        self._links = deps.links
        self._marked = deps.marked

    async def on_get(self, req: Request, resp: falcon.asgi.Response, invoice_ref: str) -> None:
        no_query(req.query_string)
        invoice = await invoice_of(self._invoices, req, invoice_ref)
        reply(resp, {"successful": True, "data": self._marked(invoice_to_json(invoice, self._links))})

    async def on_post_cancel(self, req: Request, resp: falcon.asgi.Response, invoice_ref: str) -> None:
        no_query(req.query_string)
        await req.exchange.receive_body()
        no_other_than_json(req)
        invoice = await invoice_of(self._invoices, req, invoice_ref)
        answer = await self._invoices.CancelInvoice(
            pb.CancelInvoiceRequest(invoice_id=invoice.invoice_id, merchant_id=invoice.merchant_id)
        )
        reply(resp, {"successful": True, "data": self._marked(invoice_to_json(answer.invoice, self._links))})

    async def on_get_list(self, req: Request, resp: falcon.asgi.Response) -> None:
        query = Query(req.query_string)
        page = page_from(query)
        status = query.choice("status", STATUSES, pb.INVOICE_STATUS_UNSPECIFIED)
        currency_code = query.currency("currency")
        customer_id = query.text("customer_id", most=most_of(pb.ListInvoicesRequest, "customer_id"))
        order = query.choice("order", ORDERS, pb.SORT_ORDER_DESC)
        created_from, created_to = query.time("created_from"), query.time("created_to")
        query.check()
        request = pb.ListInvoicesRequest(
            merchant_id=req.exchange.caller.merchant_id,
            page=page.asked,
            per_page=page.per_page,
            status=status,
            currency_code=currency_code,
            customer_id=customer_id or "",
            created_from=timestamp_from(created_from),
            created_before=timestamp_from(created_to),
            after_invoice_id=page.after,
            order=order,
        )
        with in_the_list(page.after):
            answer = await self._invoices.ListInvoices(request)
        data = [self._marked(invoice_to_json(invoice, self._links)) for invoice in answer.invoices]
        reply(resp, page_to_json(page, answer.total, data, id_name="invoice_id"))


async def invoice_of(invoices: InvoicesServiceAsyncStub, req: Request, segment: str) -> pb.Invoice:
    """Returns the caller's invoice that the segment of the path names. Raises INVOICE_NOT_FOUND."""
    request = pb.GetInvoiceRequest(
        merchant_id=req.exchange.caller.merchant_id, invoice_ref=invoice_ref_from(segment)
    )
    return (await invoices.GetInvoice(request)).invoice


def create_request_from(wanted: CreateInvoice, exchange: Exchange) -> pb.CreateInvoiceRequest:
    """Returns the request for invoices. It has the merchant from Authenticate, so invoices need not call identity
    again.
    """
    return pb.CreateInvoiceRequest(
        merchant=exchange.caller,
        key_id=exchange.key_id,
        amount=wanted.amount,
        currency_code=wanted.currency_code,
        customer_id=wanted.customer_id,
        external_id=wanted.external_id,
        purpose=wanted.purpose,
        callback_url=wanted.callback_url,
        success_url=wanted.success_url,
        fail_url=wanted.fail_url,
        metadata=[pb.Metadata(key=key, value=value) for key, value in (wanted.metadata or {}).items()],
    )


def created_invoice_to_json(invoice: pb.Invoice, links: Links) -> dict[str, Any]:
    """Returns `CreatedInvoice` of openapi.yaml."""
    return {
        "invoice_id": invoice.invoice_id,
        "external_id": invoice.external_id,
        "amount": invoice.amount,
        "currency": invoice.currency_code,
        "status": STATUS_NAMES[invoice.status],
        "payment_link": links.payment_link(invoice.invoice_id),
        "customer_id": invoice.customer_id,
        "purpose": optional(invoice, "purpose"),
        "callback_url": optional(invoice, "callback_url"),
        "success_url": optional(invoice, "success_url"),
        "fail_url": optional(invoice, "fail_url"),
        "created_at": time_text(invoice.created_at),
        "expires_at": time_text(invoice.expires_at),
        "finished_at": optional_time_text(invoice, "finished_at"),
        "metadata": {each.key: each.value for each in invoice.metadata} or None,
    }


def invoice_to_json(invoice: pb.Invoice, links: Links) -> dict[str, Any]:
    """Returns `Invoice` of openapi.yaml."""
    chosen = invoice.HasField("deal")
    return {
        **created_invoice_to_json(invoice, links),
        "final_amount": optional(invoice, "final_amount"),
        "is_adjusted": invoice.is_adjusted,
        "method_selected": chosen,
        "deal": deal_to_json(invoice.deal) if chosen else None,
    }


def deal_to_json(deal: pb.Deal) -> dict[str, Any]:
    """Returns the deal as JSON (`Deal` of openapi.yaml)."""
    return {
        "deal_id": deal.deal_id,
        "status": DEAL_STATUS_NAMES[deal.status],
        "sub_status": deal.sub_status or None,
        "payment_method_code": deal.payment_method_code or None,
        "payment_method_name": deal.payment_method_name or None,
        "amount_fiat": deal.amount_fiat or None,
        "conversion_rate": deal.conversion_rate or None,
        "merchant_usdt": optional(deal, "merchant_usdt"),
        "expires_at": time_text(deal.expires_at),
        "finished_at": optional_time_text(deal, "finished_at"),
        "mark_paid_at": optional_time_text(deal, "mark_paid_at"),
    }
