"""Parts for operators alone: choices of the whole catalog as filters, and the cancellation of an invoice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import falcon.asgi

from console.exchange import Request
from console.invoices.invoice import InvoicePage
from console.invoices.list import InvoicesPage, filters_of
from console.page import leave_for
from console.ui.choices import catalog_choices
from console.ui.desk import lines_that_paid
from console.ui.filters import Choice
from console.words.bank import PaidBy
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.rpc.errors import Refused

PROBLEMS: Final = {"INVOICE_FINISHED": "invoice_finished", "DEAL_STATE_CONFLICT": "invoice_marked_paid"}
"""The sentence for each refusal of a cancellation."""


class DeskInvoicesPage(InvoicesPage):
    """/invoices of all merchants."""

    filters = filters_of(
        Choice("currency", "Currency", of="currency_code"),
        Choice("method", "Method", of="payment_method_code"),
    )

    async def choices(self, req: Request) -> Mapping[str, Mapping[str, str]]:
        return await catalog_choices(self.deps.catalog.GetCatalog(catalog_pb2.GetCatalogRequest()))


class DeskInvoicePage(InvoicePage):
    """/invoices/{invoice_id} with its cancellation, and the bank lines that paid."""

    async def _paid_by(self, deals: Sequence[pb.Deal]) -> Sequence[PaidBy]:
        return (
            await lines_that_paid(self.deps.line_payments.ListLinePayments, self.deps.bank.ListLines, deals)
            or ()
        )

    async def on_post_cancel(self, req: Request, resp: falcon.asgi.Response, invoice_id: str) -> None:
        await self.form(req)
        path, call = f"/invoices/{invoice_id}", pb.CancelInvoiceRequest(invoice_id=invoice_id)
        try:
            await self.deps.invoices.CancelInvoice(call)
        except Refused as refused:
            if refused.reason not in PROBLEMS:
                raise
            leave_for(resp, path, problem=PROBLEMS[refused.reason])
        else:
            leave_for(resp, path, notice="invoice-canceled")
