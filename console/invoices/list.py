"""The list of invoices: of all merchants at the desk, of the session's merchant at the dashboard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.ui.filters import DAYS, SINCE, UNTIL, Amount, Choice, Filter, Merchant, Text
from console.ui.values import iso, word
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.proto import timestamp_from

STATUSES: Final = {
    "": "All",
    "pending": "Pending",
    "success": "Paid",
    "fail": "Failed",
    "expired": "Expired",
    "canceled": "Canceled",
}


def filters_of(currency: Filter, method: Filter) -> Sequence[Filter]:
    """Returns the filters of the list, with these two in their place."""
    return (
        Choice("status", "Status", STATUSES),
        Merchant(),
        Text("order", "Order", of="external_id"),
        Text("customer", "Customer", of="customer_id"),
        Amount("amount_from", "Amount from"),
        Amount("amount_to", "Amount to"),
        currency,
        method,
        *DAYS,
    )


class InvoicesPage(ListPage):
    """/invoices and /invoices.csv: newest first."""

    link = "/invoices"
    template = "invoices"
    csv_name = "invoices"
    columns = (
        *("invoice_id", "created_at", "finished_at", "status", "amount", "adjusted_amount", "currency_code"),
        *("merchant_id", "merchant", "external_id", "customer_id", "purpose", "deal_id", "deal_sub_status"),
        *("payment_method_code", "amount_fiat", "conversion_rate", "merchant_usdt", "reference"),
        "sender_name",
    )
    filters = filters_of(
        Text("currency", "Currency", hint="as EUR", of="currency_code"),
        Text("method", "Method", hint="its code", of="payment_method_code"),
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListAllInvoicesRequest(
            merchant_id=asked["merchant"],
            external_id=asked["order"],
            customer_id=asked["customer"],
            amount_from=asked["amount_from"],
            amount_to=asked["amount_to"],
            currency_code=asked["currency"],
            payment_method_code=asked["method"],
            created_from=timestamp_from(SINCE.begin(asked["since"])),
            created_before=timestamp_from(UNTIL.end(asked["until"])),
            after_invoice_id=asked.after,
            limit=asked.limit,
        )
        if asked["status"]:
            request.status = pb.InvoiceStatus.Value(f"INVOICE_STATUS_{asked['status'].upper()}")
        answer = await self.deps.deals.ListAllInvoices(request)
        names = await self.names(*(each.merchant_id for each in answer.invoices))
        if answer.reached_invoice_id:
            values = {"names": names, "reached_at": answer.reached_at}
            return Found(answer.invoices, answer.reached_invoice_id, values=values)
        return asked.found(answer.invoices, after=lambda row: row.invoice_id, names=names)

    def cells(self, row: pb.Invoice, found: Found) -> Sequence[str]:
        deal = row.deal
        return (
            *(row.invoice_id, iso(row.created_at), iso(row.finished_at), word(row, "status"), row.amount),
            *(deal.adjusted_amount, row.currency_code, row.merchant_id),
            *(found.values["names"].get(row.merchant_id, ""), row.external_id, row.customer_id, row.purpose),
            *(deal.deal_id, deal.sub_status, deal.payment_method_code, deal.amount_fiat),
            *(deal.conversion_rate, deal.merchant_usdt, deal.reference, deal.sender_name),
        )
