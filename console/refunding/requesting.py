"""The request of a refund by a member: a form, the same as a page to agree to, and the request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import falcon.asgi

from console.agreed_page import FORM_USED, AgreedPage, given
from console.calls import invoices_of
from console.exchange import Request
from console.page import leave_for
from console.ui.pages import only_for
from console.ui.words import sentence_for
from console.words.refunds import ACCOUNT_KINDS, account_in
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import refunds_pb2 as pb
from kit.base.account_forms import AccountKind, normal_form
from kit.base.ids import new_id, parse_id
from kit.base.money import amount_text, money_text, plainly, usdt_text
from kit.rpc import values
from kit.rpc.errors import Refused, database_unavailable, not_found
from kit.rpc.values import invalid, together

FROM_CUSTOMER: Final = "customer"
COMMISSION_STAYS: Final = "The commission stays with the operator, so a refund takes more than was credited"
CHANGED: Final = "It takes {} USDT by now, so nothing was requested. Look at it again."


class NewRefundPage(AgreedPage):
    """/refunds/new?invoice=…"""

    link = "/refunds"
    roles = frozenset({"owner", "finance"})
    fields = (
        *("invoice", "amount", "account_from", "account_kind", "account", "holder", "bank", "reason"),
        *("expected", "request_key"),
    )
    most = 500
    mendable = frozenset(
        {
            "VALIDATION_ERROR",
            "EDIT_CONFLICT",
            "INSUFFICIENT_BALANCE",
            "MERCHANT_BLOCKED",
            "OWNER_BLOCKED",
            "REFUND_EXISTS",
            "REFUND_INVALID",
        }
    )
    again = "refunding-again"
    noun = "refund"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, self.roles)
        first = {"invoice": req.get_param("invoice") or "", "account_from": FROM_CUSTOMER}
        await self.ask(req, resp, self.new(**first))

    on_head = on_get

    async def make(self, req: Request, resp: falcon.asgi.Response, typed: Mapping[str, str]) -> None:
        if parse_id(typed["request_key"]) is None:
            raise invalid("request_key", "the form has no key")
        request = self._request(req, typed)
        request.external_id, request.expected_amount = typed["request_key"], typed["expected"]
        request.reason = typed["reason"]
        if typed["account_from"] != FROM_CUSTOMER:
            request.account.CopyFrom(account_in(typed))
        made = (await self.deps.refunds.RequestRefund(request)).refund
        leave_for(resp, f"/refunds/{made.refund_id}", notice="refund-requested")

    async def preview(self, req: Request, resp: falcon.asgi.Response, typed: Mapping[str, str]) -> None:
        wanted = dict(typed) | {"amount": plainly(typed["amount"])}
        if typed["account_from"] != FROM_CUSTOMER:
            wanted |= checked_account(typed)
        invoice, found = await asyncio.gather(self._invoice(req, wanted["invoice"]), self._check(req, wanted))
        left = Decimal(found.available) - Decimal(found.amount)
        if left < 0:
            has, takes = (money_text(each, "USDT") for each in (found.available, found.amount))
            enough = money_text(found.affordable, found.currency_code)
            why = "" if found.returns_commission else f". {COMMISSION_STAYS}"
            raise invalid(
                "refund_amount", f"it takes {takes}, and {has} are available: enough for {enough} now{why}"
            )
        wanted |= {"amount": found.refund_amount, "expected": found.amount}
        self.show(
            req,
            resp,
            "refunding-agree",
            invoice=invoice,
            check=found,
            typed=wanted,
            left=usdt_text(left),
            kinds=ACCOUNT_KINDS,
            from_customer=typed["account_from"] == FROM_CUSTOMER,
        )

    async def ask(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: Mapping[str, str],
        refused: Refused | None = None,
    ) -> None:
        invoice = await self._invoice(req, typed["invoice"])
        shown = self.after(typed, refused)
        if refused is not None and refused.reason == "REFUND_EXISTS":
            problem = FORM_USED.format(self.noun)
            shown |= {"typed": {**typed, "request_key": str(new_id())}, "problem": problem, "errors": {}}
        elif refused is not None and refused.reason == "EDIT_CONFLICT":
            now = amount_text(refused.metadata.get("now", ""))
            shown |= {"problem": CHANGED.format(now), "errors": {}}
        elif refused is not None and refused.reason == "INSUFFICIENT_BALANCE":
            shown |= {"problem": f"{refused.message}."}
        check, why_not = None, ""
        try:
            check = await self._check(req, {**typed, "amount": ""})
        except Refused as fault:
            if fault.reason != "REFUND_INVALID":
                raise
            why_not = sentence_for(fault.reason, fault) or ""
        self.show(
            req,
            resp,
            "refunding-new",
            refused=refused,
            invoice=invoice,
            check=check,
            why_not=why_not,
            commission_stays=COMMISSION_STAYS,
            kinds=ACCOUNT_KINDS,
            **shown,
        )

    async def _check(self, req: Request, typed: Mapping[str, str]) -> pb.CheckRefundResponse:
        merchant_id = req.exchange.signed_in.merchant_id
        request = pb.CheckRefundRequest(refund=self._request(req, typed), merchant_id=merchant_id)
        return await self.deps.refunds.CheckRefund(request)

    def _request(self, req: Request, typed: Mapping[str, str]) -> pb.RequestRefundRequest:
        return pb.RequestRefundRequest(
            merchant_id=req.exchange.signed_in.merchant_id,
            invoice_id=typed["invoice"],
            origin=pb.REFUND_ORIGIN_CREDITED,
            refund_amount=typed["amount"],
        )

    async def _invoice(self, req: Request, invoice_id: str) -> invoices_pb2.Invoice:
        if parse_id(invoice_id) is None:
            raise not_found("INVOICE_NOT_FOUND", "No such invoice")
        own = req.exchange.signed_in.merchant_id
        found = await invoices_of(self.deps.deals, [invoice_id], merchant_id=own)
        if found is None:
            raise database_unavailable()
        if invoice_id not in found:
            raise not_found("INVOICE_NOT_FOUND", "No such invoice")
        return found[invoice_id]


def checked_account(typed: Mapping[str, str]) -> dict[str, Any]:
    """Returns the account in the form of its kind. Raises VALIDATION_ERROR for all fields that are wrong."""
    kind = typed["account_kind"] if typed["account_kind"] in ACCOUNT_KINDS else "free"
    checks: dict[str, Callable[[], Any]] = {
        "account": lambda: values.parsed(
            "account", given("account", typed["account"]), lambda text: normal_form(AccountKind(kind), text)
        ),
        "holder": lambda: given("holder", typed["holder"]),
    }
    return {"account_kind": kind, **together(**checks)}
