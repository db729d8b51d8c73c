"""CheckoutService: the customer's steps on the payment page."""

import grpc

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2_grpc as pb_grpc
from kit.base.money import fiat_text
from kit.base.proto import optional, timestamp_from
from services.invoices.operations import cases, checkout
from services.invoices.rpc.converters import case_to_message, invoice_to_message, requisite_to_message
from services.invoices.wiring import Deps

# ruff: noqa: N802  the proto names the methods

Context = grpc.ServicerContext


class CheckoutServicer(pb_grpc.CheckoutServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def GetCheckout(self, request: pb.GetCheckoutRequest, context: Context) -> pb.GetCheckoutResponse:
        page = checkout.get_checkout(self._deps, invoice_id=request.invoice_id, choosing=request.choosing)
        return pb.GetCheckoutResponse(
            invoice=invoice_to_message(page.invoice),
            merchant_name=page.merchant.name,
            branding=page.merchant.branding,
            methods=[
                pb.CheckoutMethod(
                    offer=each.offer,
                    amount_fiat=fiat_text(each.amount_fiat),
                    taken=each.taken,
                    free_from=timestamp_from(each.free_from),
                )
                for each in page.offers
            ],
            requisite=requisite_to_message(page.requisite) if page.requisite else None,
            now=timestamp_from(page.now),
            methods_refused=page.offers_refused,
            case=case_to_message(page.case) if page.case else None,
        )

    def FindMissingInvoices(
        self, request: pb.FindMissingInvoicesRequest, context: Context
    ) -> pb.FindMissingInvoicesResponse:
        missing = checkout.find_missing_invoices(self._deps, invoice_ids=request.invoice_ids)
        return pb.FindMissingInvoicesResponse(missing_ids=map(str, missing))

    def SelectPaymentMethod(
        self, request: pb.SelectPaymentMethodRequest, context: Context
    ) -> pb.SelectPaymentMethodResponse:
        view, requisite = checkout.select_payment_method(
            self._deps, invoice_id=request.invoice_id, method_code=request.method_code
        )
        return pb.SelectPaymentMethodResponse(
            invoice=invoice_to_message(view), requisite=requisite_to_message(requisite)
        )

    def MarkPaid(self, request: pb.MarkPaidRequest, context: Context) -> pb.MarkPaidResponse:
        view = checkout.mark_paid(
            self._deps,
            invoice_id=request.invoice_id,
            deal_id=request.deal_id,
            sender_name=request.sender_name,
        )
        return pb.MarkPaidResponse(invoice=invoice_to_message(view))

    def CancelCheckout(
        self, request: pb.CancelCheckoutRequest, context: Context
    ) -> pb.CancelCheckoutResponse:
        view = checkout.cancel_checkout(self._deps, invoice_id=request.invoice_id)
        return pb.CancelCheckoutResponse(invoice=invoice_to_message(view))

    def OpenCustomerAppeal(
        self, request: pb.OpenCustomerAppealRequest, context: Context
    ) -> pb.OpenCustomerAppealResponse:
        view = checkout.open_customer_appeal(
            self._deps,
            invoice_id=request.invoice_id,
            note=request.note,
            picture=optional(request, "picture"),
        )
        return pb.OpenCustomerAppealResponse(invoice=invoice_to_message(view))

    def OpenCase(self, request: pb.OpenCaseRequest, context: Context) -> pb.OpenCaseResponse:
        row = cases.open_case(
            self._deps,
            invoice_id=request.invoice_id,
            note=request.note,
            picture=optional(request, "picture"),
        )
        return pb.OpenCaseResponse(case=case_to_message(row))
