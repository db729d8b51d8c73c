"""CheckoutService: the customer's steps on the payment page; SimulationService: those of test mode."""

from typing import Any, Final

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.money import fiat_text
from kit.base.proto import timestamp_from
from kit.rpc.methods import Methods, by_name
from services.invoices.operations import cases, checkout, deal_money, links, simulation
from services.invoices.rpc.converters import (
    case_for_customer,
    invoice_to_message,
    link_to_message,
    requisite_to_message,
)
from services.invoices.store.views import InvoiceView, RequisiteView
from services.invoices.wiring import Deps


def _page(page: checkout.Checkout) -> dict[str, Any]:
    return {
        "invoice": invoice_to_message(page.invoice),
        "merchant_name": page.merchant.name,
        "branding": page.merchant.branding,
        "methods": [
            pb.CheckoutMethod(
                offer=each.offer,
                amount_fiat=fiat_text(each.amount_fiat),
                taken=each.taken,
                free_from=timestamp_from(each.free_from),
            )
            for each in page.offers
        ],
        "requisite": requisite_to_message(page.requisite) if page.requisite else None,
        "now": timestamp_from(page.now),
        "methods_refused": page.offers_refused,
        "case": case_for_customer(page.case) if page.case else None,
    }


def get_checkout(deps: Deps, request: pb.GetCheckoutRequest) -> pb.GetCheckoutResponse:
    page = checkout.get_checkout(deps, invoice_id=request.invoice_id, choosing=request.choosing)
    return pb.GetCheckoutResponse(
        **_page(page), account_kind=deal_money.form_of_accounts(deps, page.invoice) or ""
    )


def _invoice(view: InvoiceView) -> dict[str, Any]:
    return {"invoice": invoice_to_message(view)}


def _chosen(chosen: tuple[InvoiceView, RequisiteView]) -> dict[str, Any]:
    view, requisite = chosen
    return {"invoice": invoice_to_message(view), "requisite": requisite_to_message(requisite)}


METHODS: Final[Methods] = {
    "GetCheckout": get_checkout,
    "FindMissingInvoices": by_name(
        checkout.find_missing_invoices, lambda missing: {"missing_ids": map(str, missing)}
    ),
    "GetLink": by_name(
        links.get_link,
        lambda page: {
            "link": link_to_message(page.link, page.status),
            "merchant_name": page.merchant.name,
            "branding": page.merchant.branding,
        },
    ),
    "PayLink": by_name(links.pay_link, lambda invoice: {"invoice_id": str(invoice.id)}),
    "SelectPaymentMethod": by_name(checkout.select_payment_method, _chosen),
    "MarkPaid": by_name(checkout.mark_paid, _invoice),
    "CancelCheckout": by_name(checkout.cancel_checkout, _invoice),
    "OpenCustomerAppeal": by_name(checkout.open_customer_appeal, _invoice),
    "OpenCase": by_name(cases.open_case, lambda row: {"case": case_for_customer(row)}),
}
SIMULATION: Final[Methods] = {"Simulate": by_name(simulation.simulate, _invoice)}
