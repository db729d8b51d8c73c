"""The refunds of the session's merchant."""

from __future__ import annotations

from collections.abc import Sequence

from console.calls import invoices_of
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.ui.filters import Choice, Text
from console.ui.values import iso, word
from console.words.refunds import STATES
from console.words.states import words_of
from fiatgate.withdrawals.v1 import refunds_pb2 as pb


class RefundsPage(ListPage):
    """/refunds and /refunds.csv: newest first."""

    link = "/refunds"
    template = "refunding"
    csv_name = "refunds"
    columns = (
        *("refund_id", "created_at", "external_id", "invoice_id", "origin", "status", "refund_amount"),
        *(
            "currency_code",
            "amount",
            "conversion_rate",
            "account",
            "holder",
            "reason",
            "failure",
            "finished_at",
        ),
    )
    filters = (
        Choice("status", "Status", {"": "Any"} | {each: words_of(each) for each in STATES}),
        Text("external", "Refund", hint="your external_id", of="external_id"),
        Text("invoice", "Invoice", hint="id", of="invoice_id"),
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListRefundsRequest(
            merchant_id=req.exchange.signed_in.merchant_id,
            invoice_id=asked["invoice"],
            external_id=asked["external"],
            statuses=[STATES[asked["status"]]] if asked["status"] in STATES else [],
            after_refund_id=asked.after,
            limit=asked.limit,
        )
        found = (await self.deps.refunds.ListRefunds(request)).refunds
        ids = (each.invoice_id for each in found)
        orders = await invoices_of(self.deps.deals, ids, merchant_id=request.merchant_id)
        return asked.found(found, after=lambda row: row.refund_id, orders=orders or {})

    def cells(self, row: pb.Refund, found: Found) -> Sequence[str]:
        return (
            *(row.refund_id, iso(row.created_at), row.external_id, row.invoice_id, word(row, "origin")),
            *(word(row, "status"), row.refund_amount, row.currency_code, row.amount, row.conversion_rate),
            *(row.account.account, row.account.holder, row.reason, row.failure, iso(row.finished_at)),
        )
