"""Refunds at the desk: the list by status, and one with everything that the bank's form asks for, and its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final

import falcon.asgi

from console.calls import invoices_of
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page, leave_for
from console.ui.acts import entry_of
from console.ui.filters import Merchant, Tabs, Text
from console.ui.values import iso, word
from console.words.refunds import ACCOUNT_KINDS, account_in, history
from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from kit.base.proto import most_of
from kit.rpc.errors import Refused

STATUSES: Final = {
    "ready": (pb.REFUND_STATUS_READY,),
    "sent": (pb.REFUND_STATUS_SENT,),
    "waiting": (pb.REFUND_STATUS_WAITING_FOR_ACCOUNT,),
    "all": (),
}
MENDABLE: Final = frozenset(
    {
        "VALIDATION_ERROR",
        "REFUND_STATE_CONFLICT",
        "APPROVAL_REQUIRED",
        "APPROVAL_STATE_CONFLICT",
        "NOT_DECIDED",
        "REFUND_INVALID",
        "MERCHANT_BLOCKED",
        "OWNER_BLOCKED",
    }
)
ACCOUNT_MOST: Final = most_of(pb.RefundAccount, "account")
ACCOUNT: Final = ("account_kind", "account", "holder", "bank")
REFERENCE_MOST: Final = most_of(pb.CompleteRefundRequest, "bank_reference")
FAILURE_MOST: Final = most_of(pb.FailRefundRequest, "failure")


class RefundsPage(ListPage):
    """/refunds and /refunds.csv: what waits, the oldest first; all, the newest first."""

    link = "/refunds"
    template = "refunds"
    csv_name = "refunds"
    columns = (
        *(
            "refund_id",
            "created_at",
            "status",
            "origin",
            "merchant_id",
            "merchant",
            "invoice_id",
            "external_id",
        ),
        *(
            "refund_amount",
            "currency_code",
            "amount",
            "conversion_rate",
            "bank_reference",
            "failure",
            "reason",
        ),
        "finished_at",
    )
    filters = (
        Tabs(
            "status",
            "Parts",
            {"ready": "To send", "sent": "Sent", "waiting": "Without an account", "all": "All"},
            counts={"ready": "refunds_ready", "sent": "refunds_sent"},
        ),
        Merchant(),
        Text("invoice", "Invoice", hint="id", of="invoice_id"),
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListRefundsRequest(
            merchant_id=asked["merchant"],
            invoice_id=asked["invoice"],
            statuses=STATUSES[asked["status"]],
            oldest_first=asked["status"] != "all",
            after_refund_id=asked.after,
            limit=asked.limit,
        )
        found = (await self.deps.refunds.ListRefunds(request)).refunds
        names, orders = await asyncio.gather(
            self.names(*(each.merchant_id for each in found)),
            invoices_of(self.deps.deals, (each.invoice_id for each in found), merchant_id=""),
        )
        return asked.found(found, after=lambda row: row.refund_id, names=names, orders=orders or {})

    def cells(self, row: pb.Refund, found: Found) -> Sequence[str]:
        return (
            *(row.refund_id, iso(row.created_at), word(row, "status"), word(row, "origin")),
            *(
                row.merchant_id,
                found.values["names"].get(row.merchant_id, ""),
                row.invoice_id,
                row.external_id,
            ),
            *(row.refund_amount, row.currency_code, row.amount, row.conversion_rate, row.bank_reference),
            *(row.failure, row.reason, iso(row.finished_at)),
        )


class RefundPage(Page):
    """/refunds/{refund_id}, and its steps."""

    link = "/refunds"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, refund_id: str) -> None:
        await self._show(req, resp, refund_id)

    on_head = on_get

    async def on_post_account(self, req: Request, resp: falcon.asgi.Response, refund_id: str) -> None:
        form = await self.form(req)
        typed = {name: form.line(name, most=ACCOUNT_MOST) for name in ACCOUNT}
        request = pb.SetRefundAccountRequest(refund_id=refund_id, account=account_in(typed))
        call = self.deps.refunds.SetRefundAccount(request)
        await self._step(req, resp, refund_id, call, notice="refund-account-given", typed=typed)

    async def on_post_send(self, req: Request, resp: falcon.asgi.Response, refund_id: str) -> None:
        form = await self.form(req)
        request = pb.SendRefundRequest(
            refund_id=refund_id, bank_reference=form.line("bank_reference", most=REFERENCE_MOST)
        )
        await self._step(req, resp, refund_id, self.deps.refunds.SendRefund(request), notice="refund-sent")

    async def on_post_complete(self, req: Request, resp: falcon.asgi.Response, refund_id: str) -> None:
        form = await self.form(req)
        request = pb.CompleteRefundRequest(
            refund_id=refund_id, bank_reference=form.line("bank_reference", most=REFERENCE_MOST)
        )
        await self._step(
            req, resp, refund_id, self.deps.refunds.CompleteRefund(request), notice="refund-done"
        )

    async def on_post_fail(self, req: Request, resp: falcon.asgi.Response, refund_id: str) -> None:
        form = await self.form(req)
        request = pb.FailRefundRequest(refund_id=refund_id, failure=form.line("failure", most=FAILURE_MOST))
        await self._step(req, resp, refund_id, self.deps.refunds.FailRefund(request), notice="refund-failed")

    async def on_post_cancel(self, req: Request, resp: falcon.asgi.Response, refund_id: str) -> None:
        await self.form(req)
        call = self.deps.refunds.CancelRefund(pb.CancelRefundRequest(refund_id=refund_id))
        await self._step(req, resp, refund_id, call, notice="refund-canceled")

    async def _step(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        refund_id: str,
        call: Awaitable[object],
        *,
        notice: str,
        typed: Mapping[str, str] | None = None,
    ) -> None:
        try:
            await call
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, refund_id, refused=refused, typed=typed)
        else:
            leave_for(resp, f"/refunds/{refund_id}", notice=notice)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        refund_id: str,
        *,
        refused: Refused | None = None,
        typed: Mapping[str, str] | None = None,
    ) -> None:
        values: dict[str, Any] = await refund_of(self, refund_id)
        self.show(
            req,
            resp,
            "refund",
            refused=refused,
            typed=typed or dict.fromkeys(ACCOUNT, ""),
            kinds=ACCOUNT_KINDS,
            **values,
        )


async def refund_of(page: Page, refund_id: str) -> dict[str, Any]:
    """Returns the refund with its history and the merchant's name. Raises REFUND_NOT_FOUND."""
    found = await page.deps.refunds.GetRefund(pb.GetRefundRequest(refund_id=refund_id))
    names = await page.names(found.refund.merchant_id)
    return {
        "refund": found.refund,
        "merchant": names.get(found.refund.merchant_id, found.refund.merchant_id),
        "entries": [entry_of(each) for each in history(found)],
        "approval_id": found.pending_approval_id,
        "correction_id": found.pending_correction_id,
    }
