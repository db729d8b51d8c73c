"""The return of money that was never credited: it came late, or beyond the amount."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import falcon.asgi

from console.calls import invoices_of
from console.exchange import Request
from console.page import Page
from console.ui.desk import line_of, take_line, used
from console.ui.pages import only_for
from console.ui.values import number_of, word
from console.words.refunds import ACCOUNT_KINDS, account_in
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from kit.base.ids import new_id
from kit.base.money import plainly
from kit.rpc.errors import Refused, database_unavailable, not_found

FIELDS: Final = (
    *("invoice", "case", "amount", "account_kind", "account", "holder", "bank", "reason"),
    *("line", "left", "request_key"),
)
GIVEN: Final = ("invoice", "case", "line", "left")
FIELD_MOST: Final = 500
MENDABLE: Final = frozenset(
    {
        *("VALIDATION_ERROR", "REFUND_INVALID", "REFUND_EXISTS", "MERCHANT_BLOCKED", "OWNER_BLOCKED"),
        *("NOT_DECIDED", "BANK_LINE_CONFLICT"),
    }
)


class ReturnPage(Page):
    """/refunds/new?invoice=…&case=…: nothing is held and nothing sent, so it is requested without a preview."""

    link = "/refunds"
    roles = frozenset({"desk", "admin"})

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, self.roles)
        given = {each: (req.get_param(each) or "").strip() for each in GIVEN}
        given |= {"amount": given["left"], "request_key": str(new_id())}
        await self._show(req, resp, dict.fromkeys(FIELDS, "") | given)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, self.roles)
        form = await self.form(req)
        typed = {name: form.line(name, most=FIELD_MOST) for name in FIELDS}
        invoice = await self._invoice(typed["invoice"])
        is_paid = word(invoice, "status") == "success"
        request = pb.RequestRefundRequest(
            invoice_id=typed["invoice"],
            external_id=typed["request_key"],
            origin=pb.REFUND_ORIGIN_SURPLUS if is_paid else pb.REFUND_ORIGIN_LATE,
            refund_amount=plainly(typed["amount"]),
            case_number=number_of(typed["case"]),
            reason=typed["reason"],
        )
        if typed["account"]:
            request.account.CopyFrom(account_in(typed))
        becomes = f"Returned as money of order {invoice.external_id}"
        try:
            call = self.deps.refunds.RequestRefund
            made = (await used(self.deps, typed, "refund", lambda: call(request))).refund
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, typed, refused)
            return
        path, left = f"/refunds/{made.refund_id}", {"BANK_LINE_LEFT"}
        done = take_line(self.deps.bank, typed, becomes)
        await self.leave_after(resp, done, path, notice="return-requested", mendable=left)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: Mapping[str, str],
        refused: Refused | None = None,
    ) -> None:
        invoice = await self._invoice(typed["invoice"])
        line = await line_of(self.deps.bank, typed)
        values = {"invoice": invoice, "typed": typed, "kinds": ACCOUNT_KINDS, "line": line}
        self.show(req, resp, "refund-new", refused=refused, **values)

    async def _invoice(self, invoice_id: str) -> invoices_pb2.Invoice:
        found = await invoices_of(self.deps.deals, [invoice_id], merchant_id="") if invoice_id else {}
        if found is None:
            raise database_unavailable()
        if invoice_id not in found:
            raise not_found("INVOICE_NOT_FOUND", "No invoice has this id")
        return found[invoice_id]
