"""Rules by which lines confirm deals without a person."""

from typing import Final

import falcon.asgi

from console.exchange import Request
from console.page import Page
from fiatgate.invoices.v1 import lines_pb2 as pb

AMOUNT_MOST: Final = 24
CODE_MOST: Final = 64


class RulesPage(Page):
    """/bank/rules: the rule of each method, a form that switches one on or changes its limits, and a button for off."""

    link = "/bank"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        found = await self.deps.line_payments.ListLineRules(pb.ListLineRulesRequest())
        self.show(req, resp, "bank-rules", rules=found.rules)

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        request = pb.SetLineRuleRequest(
            method_code=form.line("method_code", most=CODE_MOST),
            enabled=form.text("enabled") == "yes",
            deal_most=form.line("deal_most", most=AMOUNT_MOST),
            day_most=form.line("day_most", most=AMOUNT_MOST),
        )
        await self.leave_after(
            resp,
            self.deps.line_payments.SetLineRule(request),
            "/bank/rules",
            notice="line-rule-set",
            mendable={"VALIDATION_ERROR", "APPROVAL_REQUIRED", "APPROVAL_STATE_CONFLICT"},
        )
