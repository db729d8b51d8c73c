"""The gRPC face of the service: message -> operation -> message. Errors are the interceptor's matter."""

from typing import Any

import grpc
from sqlalchemy import Row

from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2_grpc as pb_grpc
from kit.money import fiat_text, percent_text, rate_text, usdt_text
from kit.proto import optional, timestamp_from
from services.invoices import errors
from services.invoices.domain import DealStatus, InvoiceStatus, NewInvoice
from services.invoices.operations import checkout, creating, desk, proofs, reading
from services.invoices.store import InvoiceView
from services.invoices.wiring import Deps

# ruff: noqa: N802  the methods are named by the proto

Context = grpc.ServicerContext


def add_to(server: grpc.Server, deps: Deps) -> None:
    """Register all that this service offers."""
    pb_grpc.add_InvoicesServiceServicer_to_server(InvoicesServicer(deps), server)
    pb_grpc.add_CheckoutServiceServicer_to_server(CheckoutServicer(deps), server)
    pb_grpc.add_DealDeskServiceServicer_to_server(DealDeskServicer(deps), server)


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

    def GetInvoice(self, request: pb.GetInvoiceRequest, context: Context) -> pb.GetInvoiceResponse:
        view = reading.get_invoice(
            self._deps, merchant_id=request.merchant_id, invoice_ref=request.invoice_ref
        )
        return pb.GetInvoiceResponse(invoice=invoice_to_message(view))

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
            invoices=[invoice_to_message(view) for view in page.invoices], total=page.total
        )

    def CancelInvoice(self, request: pb.CancelInvoiceRequest, context: Context) -> pb.CancelInvoiceResponse:
        view = desk.cancel_invoice(self._deps, invoice_id=request.invoice_id, actor=request.actor)
        return pb.CancelInvoiceResponse(invoice=invoice_to_message(view))

    def ListFinishedInvoices(
        self, request: pb.ListFinishedInvoicesRequest, context: Context
    ) -> pb.ListFinishedInvoicesResponse:
        views = proofs.list_finished(
            self._deps, after_invoice_id=request.after_invoice_id, limit=request.limit
        )
        return pb.ListFinishedInvoicesResponse(invoices=[finished_to_message(view) for view in views])

    def ReannounceInvoices(
        self, request: pb.ReannounceInvoicesRequest, context: Context
    ) -> pb.ReannounceInvoicesResponse:
        announced = proofs.reannounce(self._deps, invoice_ids=request.invoice_ids)
        return pb.ReannounceInvoicesResponse(invoice_ids=[str(id) for id in announced])


class CheckoutServicer(pb_grpc.CheckoutServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def GetCheckout(self, request: pb.GetCheckoutRequest, context: Context) -> pb.GetCheckoutResponse:
        page = checkout.get_checkout(self._deps, invoice_id=request.invoice_id)
        return pb.GetCheckoutResponse(
            invoice=invoice_to_message(page.invoice),
            merchant_name=page.merchant_name,
            methods=[
                pb.CheckoutMethod(offer=each.offer, amount_fiat=fiat_text(each.amount_fiat))
                for each in page.offers
            ],
            requisite=requisite_to_message(page.requisite) if page.requisite else None,
            now=timestamp_from(page.now),
            methods_refused=page.offers_refused,
        )

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
        view = checkout.mark_paid(self._deps, invoice_id=request.invoice_id, deal_id=request.deal_id)
        return pb.MarkPaidResponse(invoice=invoice_to_message(view))

    def CancelCheckout(
        self, request: pb.CancelCheckoutRequest, context: Context
    ) -> pb.CancelCheckoutResponse:
        view = checkout.cancel(self._deps, invoice_id=request.invoice_id)
        return pb.CancelCheckoutResponse(invoice=invoice_to_message(view))

    def OpenCustomerAppeal(
        self, request: pb.OpenCustomerAppealRequest, context: Context
    ) -> pb.OpenCustomerAppealResponse:
        view = checkout.open_appeal(self._deps, invoice_id=request.invoice_id, note=request.note)
        return pb.OpenCustomerAppealResponse(invoice=invoice_to_message(view))


class DealDeskServicer(pb_grpc.DealDeskServiceServicer):
    def __init__(self, deps: Deps) -> None:
        self._deps = deps

    def ListDeals(self, request: pb.ListDealsRequest, context: Context) -> pb.ListDealsResponse:
        rows = desk.list_deals(
            self._deps, status=deal_status_from_message(request.status), limit=request.limit
        )
        return pb.ListDealsResponse(deals=[deal_to_message(row) for row in rows])

    def GetDeal(self, request: pb.GetDealRequest, context: Context) -> pb.GetDealResponse:
        story = desk.get_deal(self._deps, deal_id=request.deal_id)
        return pb.GetDealResponse(
            deal=deal_to_message(story.deal),
            requisite=requisite_to_message(story.requisite) if story.requisite else None,
            history=[transition_to_message(row) for row in story.history],
        )

    def ConfirmDeal(self, request: pb.ConfirmDealRequest, context: Context) -> pb.ConfirmDealResponse:
        row = desk.confirm_deal(self._deps, deal_id=request.deal_id, actor=request.actor)
        return pb.ConfirmDealResponse(deal=deal_to_message(row))

    def RejectDeal(self, request: pb.RejectDealRequest, context: Context) -> pb.RejectDealResponse:
        row = desk.reject_deal(self._deps, deal_id=request.deal_id, actor=request.actor, note=request.note)
        return pb.RejectDealResponse(deal=deal_to_message(row))

    def OpenAppeal(self, request: pb.OpenAppealRequest, context: Context) -> pb.OpenAppealResponse:
        row = desk.open_appeal(self._deps, deal_id=request.deal_id, actor=request.actor, note=request.note)
        return pb.OpenAppealResponse(deal=deal_to_message(row))

    def ResolveAppeal(self, request: pb.ResolveAppealRequest, context: Context) -> pb.ResolveAppealResponse:
        who: dict[str, str] = {
            "deal_id": request.deal_id,
            "actor": request.actor,
            "note": request.note,
        }
        if request.WhichOneof("outcome") == "adjusted_amount":
            row = desk.resolve_adjusted(self._deps, amount=request.adjusted_amount, **who)
        elif request.paid:
            row = desk.resolve_as_paid(self._deps, **who)
        elif request.rejected:
            row = desk.resolve_as_rejected(self._deps, **who)
        else:
            raise errors.field_invalid("outcome", "Say how: paid, adjusted_amount or rejected")
        return pb.ResolveAppealResponse(deal=deal_to_message(row))

    def AddRequisite(self, request: pb.AddRequisiteRequest, context: Context) -> pb.AddRequisiteResponse:
        row = desk.add_requisite(
            self._deps,
            method_code=request.method_code,
            holder=request.holder,
            account=request.account,
            bank=optional(request, "bank"),
            max_deals=request.max_deals,
        )
        return pb.AddRequisiteResponse(requisite=requisite_to_message(row))

    def ListRequisites(
        self, request: pb.ListRequisitesRequest, context: Context
    ) -> pb.ListRequisitesResponse:
        rows = desk.list_requisites(self._deps, method_code=request.method_code)
        return pb.ListRequisitesResponse(requisites=[requisite_to_message(row) for row in rows])

    def DisableRequisite(
        self, request: pb.DisableRequisiteRequest, context: Context
    ) -> pb.DisableRequisiteResponse:
        row = desk.set_requisite_enabled(self._deps, requisite_id=request.requisite_id, enabled=False)
        return pb.DisableRequisiteResponse(requisite=requisite_to_message(row))

    def EnableRequisite(
        self, request: pb.EnableRequisiteRequest, context: Context
    ) -> pb.EnableRequisiteResponse:
        row = desk.set_requisite_enabled(self._deps, requisite_id=request.requisite_id, enabled=True)
        return pb.EnableRequisiteResponse(requisite=requisite_to_message(row))

    def GetDealsSystem(
        self, request: pb.GetDealsSystemRequest, context: Context
    ) -> pb.GetDealsSystemResponse:
        return pb.GetDealsSystemResponse(enabled=desk.get_deals_system(self._deps))

    def SetDealsSystem(
        self, request: pb.SetDealsSystemRequest, context: Context
    ) -> pb.SetDealsSystemResponse:
        enabled = desk.set_deals_system(self._deps, enabled=request.enabled, actor=request.actor)
        return pb.SetDealsSystemResponse(enabled=enabled)


# -- converters


def invoice_to_message(view: InvoiceView | NewInvoice) -> pb.Invoice:
    return pb.Invoice(
        invoice_id=str(view.id),
        merchant_id=str(view.merchant_id),
        external_id=view.external_id,
        amount=fiat_text(view.amount),
        currency_code=view.currency_code,
        status=_INVOICE_STATUSES[view.status],
        customer_id=view.customer_id,
        purpose=view.purpose,
        callback_url=view.callback_url,
        success_url=view.success_url,
        fail_url=view.fail_url,
        created_at=timestamp_from(view.created_at),
        expires_at=timestamp_from(view.expires_at),
        finished_at=timestamp_from(view.finished_at),
        deal=None if isinstance(view, NewInvoice) or view.deal_id is None else _deal_of_view(view),
        key_id=str(view.key_id),
    )


def _deal_of_view(view: InvoiceView) -> pb.Deal:
    return deal_to_message(_DealOfView(view))


class _DealOfView:
    """The deal inside an invoice's view: its columns carry the prefix `deal_` there."""

    def __init__(self, view: InvoiceView) -> None:
        self._view = view

    def __getattr__(self, name: str) -> Any:
        return getattr(self._view, f"deal_{name}")


def deal_to_message(deal: Row[Any] | _DealOfView) -> pb.Deal:
    return pb.Deal(
        deal_id=str(deal.id),
        invoice_id=str(deal.invoice_id),
        merchant_id=str(deal.merchant_id),
        status=_DEAL_STATUSES[deal.status],
        sub_status=deal.sub_status,
        payment_method_code=deal.method_code,
        payment_method_name=deal.method_name,
        currency_code=deal.currency_code,
        amount_fiat=fiat_text(deal.amount_fiat),
        conversion_rate=rate_text(deal.conversion_rate),
        merchant_usdt=None if deal.merchant_usdt is None else usdt_text(deal.merchant_usdt),
        client_percent=percent_text(deal.client_percent),
        merchant_percent=percent_text(deal.merchant_percent),
        created_at=timestamp_from(deal.created_at),
        expires_at=timestamp_from(deal.expires_at),
        finished_at=timestamp_from(deal.finished_at),
        mark_paid_at=timestamp_from(deal.mark_paid_at),
        requisite_id=str(deal.requisite_id),
        adjusted_amount=None if deal.adjusted_amount is None else fiat_text(deal.adjusted_amount),
        invoice_amount=fiat_text(deal.invoice_amount),
    )


def finished_to_message(view: InvoiceView) -> pb.FinishedInvoice:
    return pb.FinishedInvoice(
        invoice_id=str(view.id),
        merchant_id=str(view.merchant_id),
        status=_INVOICE_STATUSES[view.status],
        finished_at=timestamp_from(view.finished_at),
        has_callback=view.callback_url is not None,
        merchant_usdt=None if view.deal_merchant_usdt is None else usdt_text(view.deal_merchant_usdt),
        event_id=str(view.event_id),
    )


def requisite_to_message(row: Row[Any]) -> pb.Requisite:
    return pb.Requisite(
        requisite_id=str(row.id),
        method_code=row.method_code,
        holder=row.holder,
        account=row.account,
        bank=row.bank,
        max_deals=row.max_deals,
        open_deals=row.open_deals,
        enabled=row.enabled,
        created_at=timestamp_from(row.created_at),
    )


def transition_to_message(row: Row[Any]) -> pb.DealTransition:
    return pb.DealTransition(
        at=timestamp_from(row.at),
        status=_DEAL_STATUSES[row.status],
        sub_status=row.sub_status,
        actor=row.actor,
        note=row.note,
    )


_INVOICE_STATUSES = {
    status.value: pb.InvoiceStatus.Value(f"INVOICE_STATUS_{status.name}") for status in InvoiceStatus
}
_DEAL_STATUSES = {status.value: pb.DealStatus.Value(f"DEAL_STATUS_{status.name}") for status in DealStatus}


def invoice_status_from_message(value: int) -> InvoiceStatus | None:
    """None for UNSPECIFIED: all. Raises VALIDATION_ERROR for a value from a newer proto."""
    if value == pb.INVOICE_STATUS_UNSPECIFIED:
        return None
    for status, number in _INVOICE_STATUSES.items():
        if number == value:
            return InvoiceStatus(status)
    raise errors.field_invalid("status", "unknown status")


def deal_status_from_message(value: int) -> DealStatus | None:
    """None for UNSPECIFIED: all. Raises VALIDATION_ERROR for a value from a newer proto."""
    if value == pb.DEAL_STATUS_UNSPECIFIED:
        return None
    for status, number in _DEAL_STATUSES.items():
        if number == value:
            return DealStatus(status)
    raise errors.field_invalid("status", "unknown status")
