"""Late money: the list, one case with everything that helps to find the money, and its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import falcon.asgi

from console.calls import case_number, or_none
from console.cases.money import CaseMoney, money_of
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page, own_path
from console.ui.beside import following, selected_of
from console.ui.desk import lines_that_wait
from console.ui.filters import DAYS, SINCE, UNTIL, Merchant, Tabs
from console.ui.values import iso, queried
from console.words.late_money import ANSWERS, ENDS, POLICIES
from fiatgate.bank.v1 import bank_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.codes import in_groups
from kit.base.proto import most_of
from kit.rpc.errors import Refused
from kit.web.forms import Form

OPEN: Final = "open"
ALL: Final = "all"
OUTCOME_MAX_CHARACTERS: Final = most_of(pb.ResolveCaseRequest, "outcome")
MENDABLE: Final = frozenset({"CASE_STATE_CONFLICT", "NOT_DECIDED"})


WORDS: Final = {"policies": POLICIES, "answers": ANSWERS, "ends": ENDS}


@dataclass(frozen=True)
class Listed:
    case: pb.Case
    deal: pb.Deal
    context: pb.DealContext

    @property
    def reference(self) -> str:
        return in_groups(self.deal.reference)

    @property
    def state(self) -> str:
        return "answered" if self.case.HasField("resolved_at") else OPEN


class CasesPage(ListPage):
    """/cases: customers say that they paid, and the invoice has ended. Oldest first; `selected` opens one beside."""

    link = "/cases"
    template = "cases"
    csv_name = "cases"
    columns = (
        "number",
        "state",
        "opened_at",
        "answered_at",
        "answered_by",
        "amount",
        "currency",
        "account",
        "reference",
        "sender",
        "merchant_id",
        "merchant",
        "order",
        "customer",
        "invoice_id",
        "deal_id",
        "customers_text",
        "answer",
        "policy",
        "answer_by",
        "merchants_answer",
        "merchants_text",
        "due",
        "ended_as",
    )
    filters = (Tabs("state", "State", {OPEN: "Open", ALL: "All"}), Merchant(), *DAYS)

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListCasesRequest(
            open_only=asked["state"] == OPEN,
            oldest_first=asked["state"] == OPEN,
            merchant_id=asked["merchant"],
            after_number=case_number(asked.after) if asked.after else 0,
            limit=asked.limit,
        )
        if begin := SINCE.begin(asked["since"]):
            request.opened_from.FromDatetime(begin)
        if end := UNTIL.end(asked["until"]):
            request.opened_before.FromDatetime(end)
        answer = await self.deps.deals.ListCases(request)
        listed = [Listed(*each) for each in zip(answer.cases, answer.deals, answer.contexts, strict=True)]
        names = await self.names(*(each.case.merchant_id for each in listed))
        return asked.found(listed, after=lambda row: str(row.case.number), names=names)

    def cells(self, row: Listed, found: Found) -> Sequence[str]:
        case, deal, context = row.case, row.deal, row.context
        return (
            str(case.number),
            row.state,
            iso(case.opened_at),
            iso(case.resolved_at),
            case.actor,
            deal.amount_fiat,
            deal.currency_code,
            context.account,
            row.reference,
            deal.sender_name,
            case.merchant_id,
            found.values["names"].get(case.merchant_id, ""),
            context.external_id,
            context.customer_id,
            case.invoice_id,
            case.deal_id,
            case.note,
            case.outcome,
            case.policy,
            iso(case.answer_by),
            case.merchant_answer,
            case.merchant_text,
            case.due,
            case.ended_as,
        )

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        state, numbers = self._given(req)["state"], [str(row.case.number) for row in found.rows]
        given = {each.name: req.get_param(each.name) or "" for each in self.filters}
        selected = selected_of(req, numbers, or_first=state == OPEN)
        values: dict[str, Any] = {
            "state": state,
            "selected": selected,
            "is_chosen": bool(req.get_param("selected") or req.get_param("next")),
            "back": queried("/cases", given | {"after": self._after(req)} | self._limit_given(req)),
            "next_number": following(numbers, selected),
            "evidence": None,
            "outcome": "",
            "ended_as": "",
            **WORDS,
        }
        if selected:
            try:
                values["evidence"] = await case_of(self, selected)
            except Refused as refused:
                if refused.reason != "CASE_NOT_FOUND":
                    raise
        return values


@dataclass(frozen=True)
class CaseEvidence:
    """A case with its invoice and the account that its customer was shown.

    merchant  the name, or empty
    money     null while withdrawals is away
    lines     bank lines that wait for its deal
    """

    case: pb.Case
    invoice: pb.Invoice
    requisite: pb.Requisite
    has_picture: bool
    merchant: str
    money: CaseMoney | None
    lines: Sequence[bank_pb2.Line]

    @property
    def reference(self) -> str:
        return in_groups(self.invoice.deal.reference)


async def case_of(page: Page, number: str) -> CaseEvidence:
    """Returns the case. Raises CASE_NOT_FOUND."""
    answer = await page.deps.deals.GetCase(pb.GetCaseRequest(number=case_number(number)))
    names, money, lines = await asyncio.gather(
        page.names(answer.case.merchant_id),
        or_none(money_of(page, answer.case)),
        lines_that_wait(page.deps.bank, answer.case.deal_id),
    )
    return CaseEvidence(
        answer.case,
        answer.invoice,
        answer.requisite,
        answer.HasField("proof"),
        names.get(answer.case.merchant_id, ""),
        money,
        lines,
    )


class CasePage(Page):
    """/cases/{number}, and its answer, which the customer reads."""

    link = "/cases"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, number: str) -> None:
        await self._show(req, resp, number)

    on_head = on_get

    async def on_post_answer(self, req: Request, resp: falcon.asgi.Response, number: str) -> None:
        form = await self.form(req)
        outcome = form.prose("outcome", most=OUTCOME_MAX_CHARACTERS)
        ended_as = form.text("ended_as")
        path = queried(_back(form), {"decided": number, "next": form.text("next")})
        call = self._resolve(
            pb.ResolveCaseRequest(number=case_number(number), outcome=outcome, ended_as=ended_as)
        )
        try:
            await self.leave_after(resp, call, path, notice="case-answered", mendable=MENDABLE)
        except Refused as refused:
            if refused.reason != "VALIDATION_ERROR":
                raise
            typed = {
                "outcome": outcome,
                "ended_as": ended_as,
                "back": _back(form),
                "next_number": form.text("next"),
            }
            await self._show(req, resp, number, refused=refused, **typed)

    async def _resolve(self, request: pb.ResolveCaseRequest) -> None:
        """Closes the case. Raises VALIDATION_ERROR for an end that no correction and no refund backs."""
        found = await self.deps.deals.GetCase(pb.GetCaseRequest(number=request.number))
        if not found.case.HasField("resolved_at"):
            (await money_of(self, found.case)).require(request.ended_as)
        await self.deps.deals.ResolveCase(request)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        number: str,
        refused: Refused | None = None,
        **typed: str,
    ) -> None:
        evidence = await case_of(self, number)
        values = {"back": f"/cases/{number}", "next_number": "", "outcome": "", "ended_as": ""} | typed
        self.show(req, resp, "cases-case", refused=refused, evidence=evidence, **WORDS, **values)


def _back(form: Form) -> str:
    path = own_path(form.text("back"))
    return path if path.startswith("/cases") else "/cases"
