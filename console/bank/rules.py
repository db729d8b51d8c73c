"""Rules by which lines confirm deals without a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import falcon.asgi

from console.exchange import Request
from console.page import Page
from console.ui.choices import methods_by_code
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import lines_pb2 as pb
from kit.base.money import plainly
from kit.rpc.errors import Refused

TYPED_MOST: Final = {"method_code": 64, "deal_most": 24, "day_most": 24}


class RulesPage(Page):
    """/bank/rules: the rule of each method, a form that switches one on or changes its limits, and a button for off."""

    link = "/bank"

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._show(req, resp, dict.fromkeys(TYPED_MOST, ""))

    on_head = on_get

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        typed = {name: form.line(name, most=most) for name, most in TYPED_MOST.items()}
        request = pb.SetLineRuleRequest(
            method_code=typed["method_code"],
            enabled=form.text("enabled") == "yes",
            deal_most=plainly(typed["deal_most"]),
            day_most=plainly(typed["day_most"]),
        )
        change = self.deps.line_payments.SetLineRule(request)
        mendable = {"APPROVAL_REQUIRED", "APPROVAL_STATE_CONFLICT"}
        try:
            await self.leave_after(resp, change, "/bank/rules", notice="line-rule-set", mendable=mendable)
        except Refused as refused:
            if refused.reason != "VALIDATION_ERROR":
                raise
            await self._show(req, resp, typed, refused)

    async def _show(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        typed: Mapping[str, str],
        refused: Refused | None = None,
    ) -> None:
        found = await self.deps.line_payments.ListLineRules(pb.ListLineRulesRequest())
        methods = await methods_by_code(self.deps.catalog.GetCatalog(catalog_pb2.GetCatalogRequest()))
        self.show(req, resp, "bank-rules", refused=refused, rules=found.rules, typed=typed, methods=methods)
