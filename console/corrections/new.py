"""A new correction: its form, a preview of everything that it changes, and the step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import falcon.asgi

from console.agreed_page import AgreedPage, given
from console.calls import invoices_of
from console.corrections.evidence import Held, held_of
from console.corrections.lists import kind_of
from console.exchange import Request
from console.ui.desk import line_of, take_line, used
from console.ui.pages import only_for
from console.ui.values import number_of
from console.words.corrections import CHANGED, DEBITS, DIRECTIONS, HEADINGS, beyond
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import corrections_pb2 as pb
from fiatgate.withdrawals.v1 import withdrawals_pb2
from kit.base.ids import parse_id
from kit.base.money import amount_text, plainly, usdt_text
from kit.rpc.errors import Refused, database_unavailable, not_found
from kit.rpc.values import together

AMOUNTS: Final = ("amount", "received", "rate")
FILLED: Final = ("amount", "received", "came", "evidence", "line", "left")
"""The fields that a link to the form may fill in, as that of a bank line does."""
BECOMES: Final = {"late_credit": "late money", "surplus": "surplus"}


class NewCorrectionPage(AgreedPage):
    """/corrections/new?kind=…&invoice=…, or &merchant=…"""

    link = "/corrections"
    roles = frozenset({"treasury", "admin"})
    fields = (
        *("kind", "invoice", "merchant", "case", *AMOUNTS, "came", "reason", "evidence", "expected"),
        *("line", "left", "request_key"),
    )
    most = 500
    mendable = frozenset(
        {
            "VALIDATION_ERROR",
            "CORRECTION_INVALID",
            "EDIT_CONFLICT",
            "APPROVAL_STATE_CONFLICT",
            "RATE_JUMPS",
            "INVOICE_NOT_FOUND",
            "DEAL_NOT_FOUND",
            "MERCHANT_NOT_FOUND",
            "NOT_DECIDED",
            "BANK_LINE_CONFLICT",
        }
    )
    again = "correction-again"
    noun = "correction"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        only_for(req, self.roles)
        named = {each: (req.get_param(each) or "").strip() for each in ("invoice", "merchant", "case")}
        kind = req.get_param("kind") or "manual"
        if kind not in (*HEADINGS, *DIRECTIONS) or (
            kind in HEADINGS and kind != "manual" and not named["invoice"]
        ):
            raise not_found("NOT_FOUND", "A correction has a kind, and an invoice or a merchant")
        filled = {each: (req.get_param(each) or "").strip()[: self.most] for each in FILLED}
        await self.ask(req, resp, self.new(kind=kind, **named, **filled))

    on_head = on_get

    async def make(self, req: Request, resp: falcon.asgi.Response, typed: Mapping[str, str]) -> None:
        request = _request(typed)
        request.reason = typed["reason"]
        request.request_key, request.expected_amount = typed["request_key"], typed["expected"]
        becomes = ""
        if (kind := BECOMES.get(typed["kind"])) and (invoice := await self._invoice(typed["invoice"])):
            becomes = f"Credited as {kind} of order {invoice.external_id}"
        path = f"/invoices/{typed['invoice']}" if typed["invoice"] else f"/merchants/{typed['merchant']}/view"
        path = f"/cases/{typed['case']}" if typed["case"] else path
        call = self._make(request, typed, becomes)
        mendable = {"APPROVAL_REQUIRED", "BANK_LINE_LEFT"}
        await self.leave_after(resp, call, path, notice="correction-made", mendable=mendable)

    async def _make(self, request: pb.MakeCorrectionRequest, typed: Mapping[str, str], becomes: str) -> None:
        if not becomes:
            await self.deps.corrections.MakeCorrection(request)
            return
        await used(self.deps, typed, "correction", lambda: self.deps.corrections.MakeCorrection(request))
        await take_line(self.deps.bank, typed, becomes)

    async def preview(self, req: Request, resp: falcon.asgi.Response, typed: Mapping[str, str]) -> None:
        wanted = dict(typed) | {each: plainly(typed[each]) for each in AMOUNTS}
        invoice = await self._invoice(typed["invoice"])
        checks: dict[str, Callable[[], Any]] = {"reason": lambda: given("reason", typed["reason"])}
        if typed["kind"] not in DIRECTIONS:
            checks["evidence"] = lambda: given("evidence", typed["evidence"])
        if typed["kind"] == "surplus" and invoice is not None:
            checks["came"] = lambda: beyond(typed["came"], invoice.deal)
        if typed["kind"] == "manual":
            checks["kind"] = lambda: given("kind", "")
        checked = together(**checks)
        if "came" in checked:
            wanted["received"] = checked["came"]
        if typed["kind"] in DIRECTIONS:
            wanted["merchant"] = await self.merchant_named(given("merchant", typed["merchant"]))
        found = await self.deps.corrections.CheckCorrection(
            pb.CheckCorrectionRequest(correction=_request(wanted))
        )
        wanted["expected"] = found.amount
        merchant_id = invoice.merchant_id if invoice else wanted["merchant"]
        names, held = await asyncio.gather(self.names(merchant_id), self._held(merchant_id, found))
        self.show(
            req,
            resp,
            "correction-preview",
            typed=wanted,
            is_debit=typed["kind"] in DEBITS,
            check=found,
            invoice=invoice,
            merchant_id=merchant_id,
            name=names.get(merchant_id, merchant_id),
            after=_after(found, is_debit=typed["kind"] in DEBITS),
            held=held,
        )

    async def ask(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: Mapping[str, str],
        refused: Refused | None = None,
    ) -> None:
        invoice = await self._invoice(typed["invoice"])
        if invoice is None and typed["kind"] in HEADINGS and typed["kind"] != "manual":
            raise not_found("INVOICE_NOT_FOUND", "No such invoice")
        typed = dict(typed)
        most = ""
        if typed["kind"] == "reversal":
            most = await self._reversible(typed["invoice"])
            typed["amount"] = typed["amount"] or most
        merchant_id = invoice.merchant_id if invoice else typed["merchant"]
        if parse_id(merchant_id):
            request = withdrawals_pb2.GetBalanceRequest(merchant_id=merchant_id)
            names, balance = await asyncio.gather(
                self.names(merchant_id), self.deps.withdrawals.GetBalance(request)
            )
        else:
            names, balance = {}, None
        values = self.after(typed, refused)
        if refused is not None and refused.reason == "EDIT_CONFLICT":
            values |= {"problem": CHANGED.format(amount_text(refused.metadata.get("now", ""))), "errors": {}}
        self.show(
            req,
            resp,
            "correction-new",
            refused=refused,
            heading=HEADINGS.get(typed["kind"], HEADINGS["manual"]),
            directions=DIRECTIONS,
            invoice=invoice,
            most=most,
            merchant_id=merchant_id if balance else "",
            name=names.get(merchant_id, merchant_id),
            balance=balance,
            line=await line_of(self.deps.bank, typed),
            **values,
        )

    async def _invoice(self, invoice_id: str) -> invoices_pb2.Invoice | None:
        """Returns the invoice; None for an empty id. Raises INVOICE_NOT_FOUND."""
        if not invoice_id:
            return None
        found = await invoices_of(self.deps.deals, [invoice_id], merchant_id="")
        if found is None:
            raise database_unavailable()
        if invoice_id not in found:
            raise not_found("NOT_FOUND", "No invoice has this id")
        return found[invoice_id]

    async def _reversible(self, invoice_id: str) -> str:
        """Returns what can be taken back of the invoice; zero when nothing can."""
        asked = pb.MakeCorrectionRequest(kind=pb.CORRECTION_KIND_REVERSAL, invoice_id=invoice_id)
        try:
            return (
                await self.deps.corrections.CheckCorrection(pb.CheckCorrectionRequest(correction=asked))
            ).reversible
        except Refused as refused:
            if refused.reason != "CORRECTION_INVALID":
                raise
            return refused.metadata.get("most", "0.000000")

    async def _held(self, merchant_id: str, found: pb.CheckCorrectionResponse) -> Sequence[Held]:
        """Returns what holds money of the merchant, when it would owe money beside it."""
        return await held_of(self, merchant_id) if Decimal(found.owed) else ()


def _request(typed: Mapping[str, str]) -> pb.MakeCorrectionRequest:
    return pb.MakeCorrectionRequest(
        kind=kind_of(typed["kind"]),
        merchant_id="" if typed["invoice"] else typed["merchant"],
        invoice_id=typed["invoice"],
        amount=typed["amount"],
        received_amount=typed["received"],
        conversion_rate=typed["rate"],
        case_number=number_of(typed["case"]),
        evidence=typed["evidence"],
    )


def _after(found: pb.CheckCorrectionResponse, *, is_debit: bool) -> tuple[str, str]:
    """Returns what the merchant has available and owes afterwards: USDT."""
    amount, available, debt = (Decimal(each) for each in (found.amount, found.available, found.debt))
    if is_debit:
        return usdt_text(max(available - amount, Decimal(0))), usdt_text(debt + Decimal(found.owed))
    return usdt_text(available + max(amount - debt, Decimal(0))), usdt_text(max(debt - amount, Decimal(0)))
