"""InvoicesService: merchants' calls on invoices, and the verification's."""

import grpc

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2_grpc as pb_grpc
from kit.base.proto import datetime_from, optional, timestamp_from
from services.invoices.operations import creating, desk, forgotten, reading, verification
from services.invoices.rpc.as_seen import invoice_as_seen
from services.invoices.rpc.converters import (
    finished_to_message,
    forgotten_to_message,
    invoice_status_from_message,
    invoice_to_message,
    not_restored_to_message,
)
from services.invoices.wiring import Deps

# ruff: noqa: N802  the proto names the methods

Context = grpc.ServicerContext


class InvoicesServicer(pb_grpc.InvoicesServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def CreateInvoice(self, request: pb.CreateInvoiceRequest, context: Context) -> pb.CreateInvoiceResponse:
        new = creating.create_invoice(
            self._deps,
            merchant=request.merchant,
            key_id=request.key_id,
            amount=request.amount,
            currency_code=request.currency_code,
            customer_id=request.customer_id,
            external_id=request.external_id,
            purpose=optional(request, "purpose"),
            callback_url=optional(request, "callback_url"),
            success_url=optional(request, "success_url"),
            fail_url=optional(request, "fail_url"),
        )
        return pb.CreateInvoiceResponse(invoice=invoice_to_message(new))

    def CreateInvoiceByHand(
        self, request: pb.CreateInvoiceByHandRequest, context: Context
    ) -> pb.CreateInvoiceByHandResponse:
        new = creating.create_invoice_by_hand(
            self._deps,
            merchant_id=request.merchant_id,
            amount=request.amount,
            currency_code=request.currency_code,
            customer_id=request.customer_id,
            external_id=request.external_id,
            purpose=optional(request, "purpose"),
        )
        return pb.CreateInvoiceByHandResponse(invoice=invoice_to_message(new))

    def GetInvoice(self, request: pb.GetInvoiceRequest, context: Context) -> pb.GetInvoiceResponse:
        view = reading.get_invoice(
            self._deps, merchant_id=request.merchant_id, invoice_ref=request.invoice_ref
        )
        return pb.GetInvoiceResponse(invoice=invoice_as_seen(invoice_to_message(view)))

    def ListInvoices(self, request: pb.ListInvoicesRequest, context: Context) -> pb.ListInvoicesResponse:
        page = reading.list_invoices(
            self._deps,
            merchant_id=request.merchant_id,
            page=request.page,
            per_page=request.per_page,
            status=invoice_status_from_message(request.status),
            currency_code=optional(request, "currency_code"),
            ascending=request.order == pb.SORT_ORDER_ASC,
        )
        return pb.ListInvoicesResponse(
            invoices=[invoice_as_seen(invoice_to_message(view)) for view in page.invoices], total=page.total
        )

    def CancelInvoice(self, request: pb.CancelInvoiceRequest, context: Context) -> pb.CancelInvoiceResponse:
        view = desk.cancel_invoice(self._deps, invoice_id=request.invoice_id)
        return pb.CancelInvoiceResponse(invoice=invoice_to_message(view))

    def ListFinishedInvoices(
        self, request: pb.ListFinishedInvoicesRequest, context: Context
    ) -> pb.ListFinishedInvoicesResponse:
        page = verification.list_finished_invoices(
            self._deps, after_invoice_id=request.after_invoice_id, limit=request.limit
        )
        return pb.ListFinishedInvoicesResponse(
            invoices=[finished_to_message(each) for each in page.finished],
            unreadable=page.unreadable,
            last_invoice_id=str(page.last_id or ""),
            more=page.more,
        )

    def ReannounceInvoices(
        self, request: pb.ReannounceInvoicesRequest, context: Context
    ) -> pb.ReannounceInvoicesResponse:
        done = verification.reannounce_invoices(
            self._deps, invoice_ids=request.invoice_ids, accept=request.accept
        )
        return pb.ReannounceInvoicesResponse(
            invoice_ids=[str(id) for id in done.announced],
            refused_invoice_ids=[str(id) for id in done.refused],
        )

    def ListForgottenFacts(
        self, request: pb.ListForgottenFactsRequest, context: Context
    ) -> pb.ListForgottenFactsResponse:
        page = forgotten.list_forgotten_facts(
            self._deps,
            since=datetime_from(request.since),
            after_seq=request.after_seq,
            limit=request.limit,
        )
        return pb.ListForgottenFactsResponse(
            facts=[forgotten_to_message(each) for each in page.forgotten],
            read=page.read,
            last_seq=page.last_seq,
            more=page.more,
            begins_at=timestamp_from(page.begins_at),
        )

    def RestoreForgotten(
        self, request: pb.RestoreForgottenRequest, context: Context
    ) -> pb.RestoreForgottenResponse:
        page = forgotten.restore_forgotten(
            self._deps,
            since=datetime_from(request.since),
            after_seq=request.after_seq,
            limit=request.limit,
            but=request.not_invoice_ids,
        )
        return pb.RestoreForgottenResponse(
            invoice_ids=[str(id) for id in page.restored],
            refused=[not_restored_to_message(each) for each in page.refused],
            last_seq=page.last_seq,
            more=page.more,
        )
