"""Late money of the session's merchant: the list, and one case with its thread and the merchant's answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import falcon.asgi

from console.calls import case_number, or_none
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page
from console.ui.filters import DAYS, SINCE, UNTIL, Tabs
from console.ui.values import iso, word
from console.words.late_money import ANSWERS, ENDS
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.withdrawals.v1 import refunds_pb2
from kit.base.proto import most_of
from kit.rpc.errors import Refused

ASKED: Final = "asked"
OPEN: Final = "open"
ALL: Final = "all"
UNDECIDED: Final = "undecided"
TEXT_MAX_CHARACTERS: Final = most_of(pb.AnswerCaseRequest, "text")
MENDABLE: Final = frozenset({"CASE_STATE_CONFLICT"})


@dataclass(frozen=True)
class Listed:
    case: pb.Case
    deal: pb.Deal
    context: pb.DealContext

    @property
    def state(self) -> str:
        if self.case.HasField("resolved_at"):
            return ENDS.get(self.case.ended_as, self.case.ended_as)
        return "waits for your answer" if self.case.due == UNDECIDED else "with the operator"


class LateMoneyPage(ListPage):
    """/cases: the merchant's late money."""

    link = "/cases"
    template = "late"
    csv_name = "late-money"
    columns = (
        *("number", "state", "opened_at", "answer_by", "answer", "answered_by", "answered_at", "text"),
        *("ended_as", "resolved_at", "operators_answer", "amount", "currency", "order", "customer"),
        *("invoice_id", "customers_text"),
    )
    filters = (Tabs("state", "State", {ALL: "All", ASKED: "Waits for you", OPEN: "Open"}), *DAYS)

    async def rows(self, req: Request, asked: Asked) -> Found:
        state = asked["state"]
        request = pb.ListCasesRequest(
            merchant_id=req.exchange.signed_in.merchant_id,
            open_only=state != ALL,
            undecided=state == ASKED,
            oldest_first=state != ALL,
            after_number=case_number(asked.after) if asked.after else 0,
            limit=asked.limit,
        )
        if begin := SINCE.begin(asked["since"]):
            request.opened_from.FromDatetime(begin)
        if end := UNTIL.end(asked["until"]):
            request.opened_before.FromDatetime(end)
        answer = await self.deps.deals.ListCases(request)
        listed = [Listed(*each) for each in zip(answer.cases, answer.deals, answer.contexts, strict=True)]
        return asked.found(listed, after=lambda row: str(row.case.number))

    def cells(self, row: Listed, found: Found) -> Sequence[str]:
        case, deal, context = row.case, row.deal, row.context
        return (
            *(str(case.number), row.state, iso(case.opened_at), iso(case.answer_by), case.merchant_answer),
            *(case.answered_by, iso(case.answered_at), case.merchant_text, case.ended_as),
            *(iso(case.resolved_at), case.outcome, deal.amount_fiat, deal.currency_code),
            *(context.external_id, context.customer_id, case.invoice_id, case.note),
        )


class LateCasePage(Page):
    """/cases/{number}, and the merchant's answer."""

    link = "/cases"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, number: str) -> None:
        await self._show(req, resp, number)

    on_head = on_get

    async def on_post_answer(self, req: Request, resp: falcon.asgi.Response, number: str) -> None:
        form = await self.form(req)
        answer, text = form.text("answer"), form.prose("text", most=TEXT_MAX_CHARACTERS)
        request = pb.AnswerCaseRequest(number=case_number(number), answer=answer, text=text)
        call = self.deps.deals.AnswerCase(request)
        try:
            await self.leave_after(resp, call, f"/cases/{number}", notice="case-decided", mendable=MENDABLE)
        except Refused as refused:
            if refused.reason != "VALIDATION_ERROR":
                raise
            await self._show(req, resp, number, refused=refused, answer=answer, text=text)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        number: str,
        *,
        refused: Refused | None = None,
        answer: str = "",
        text: str = "",
    ) -> None:
        found = await self.deps.deals.GetCase(pb.GetCaseRequest(number=case_number(number)))
        refund = await self._refund(found.case) if found.case.ended_as == "return" else None
        values = {
            "refund": refund,
            "case": found.case,
            "invoice": found.invoice,
            "answer": answer,
            "text": text,
        }
        self.show(req, resp, "late-case", refused=refused, answers=ANSWERS, ends=ENDS, **values)

    async def _refund(self, case: pb.Case) -> refunds_pb2.Refund | None:
        request = refunds_pb2.ListRefundsRequest(merchant_id=case.merchant_id, invoice_id=case.invoice_id)
        found = await or_none(self.deps.refunds.ListRefunds(request))
        late = (each for each in found.refunds if word(each, "origin") == "late") if found else ()
        return next(iter(late), None)
