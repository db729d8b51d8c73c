"""The list of requisites with their load, and one requisite with its days, deals and history."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import falcon.asgi

from console.calls import each_of
from console.exchange import Request
from console.file_page import FilePage, Lines
from console.list_page import Asked, Found, ListPage
from console.page import Line, Page, leave_for, own_path
from console.ui import charts
from console.ui.acts import moments_of
from console.ui.choices import full_methods, methods_by_code
from console.ui.filters import DAYS, SINCE, UNTIL, Choice, Tabs, Text
from console.ui.pages import exports
from console.ui.values import iso, word
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb

READS_MOST: Final = 10
"""Calls of one page of a requisite's deals. Each reads a bounded number of deals of all requisites."""
ACCOUNT_MAX_CHARACTERS: Final = 64
PREFIX: Final = "requisite:"
"""A box is named by its requisite, so that each ticked one survives the question for a second factor. Its value is the
account, by which people know it."""
STATES: Final = {"": "All", "enabled": "Enabled", "disabled": "Disabled", "full": "No place"}
STATUSES: Final = {
    "": "All",
    "pending": "Pending",
    "appeal": "In appeal",
    "completed": "Completed",
    "canceled": "Canceled",
    "expired": "Expired",
    "failed": "Failed",
}


class RequisitesPage(ListPage):
    """/requisites: by method and age, each with its load and its deals of today."""

    link = "/requisites"
    template = "requisites"
    csv_name = "requisites"
    columns = (
        "account",
        "holder",
        "bank",
        "max_deals",
        "method_code",
        "requisite_id",
        "enabled",
        "open_deals",
        "opened_today",
        "completed_today",
        "amount_today",
        "last_used_at",
        "created_at",
    )
    filters = (
        Tabs("state", "State", STATES),
        Choice("method", "Method"),
        Text("text", "Account, name, bank"),
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListRequisitesRequest(
            method_code=asked["method"],
            text=asked["text"],
            full=asked["state"] == "full",
            rows=asked.limit,
            after_requisite_id=asked.after,
            with_use=True,
        )
        if asked["state"] in ("enabled", "disabled"):
            request.enabled = asked["state"] == "enabled"
        listed = await self.deps.deals.ListRequisites(request)
        uses = {each.requisite_id: use for each, use in zip(listed.requisites, listed.uses, strict=True)}
        return asked.found(
            listed.requisites,
            after=lambda row: row.requisite_id,
            uses=uses,
            counted_since=listed.counted_since,
        )

    def cells(self, row: Any, found: Found) -> Sequence[str]:
        use = found.values["uses"][row.requisite_id]
        return (
            row.account,
            row.holder,
            row.bank,
            str(row.max_deals),
            row.method_code,
            row.requisite_id,
            "yes" if row.enabled else "no",
            str(row.open_deals),
            str(use.opened),
            str(use.completed),
            use.amount,
            iso(use.last_used_at),
            iso(row.created_at),
        )

    async def choices(self, req: Request) -> Mapping[str, Mapping[str, str]]:
        return {"method": {code: each.name for code, each in (await methods_of(self)).items()}}

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        catalog = self.deps.catalog.GetCatalog(catalog_pb2.GetCatalogRequest())
        places = self.deps.deals.ListMethodPlaces(pb.ListMethodPlacesRequest())
        methods, full = await asyncio.gather(methods_of(self), full_methods(catalog, places))
        return {
            "methods": methods,
            "full": full,
            "prefix": PREFIX,
            "here": req.relative_uri,
            "counted_since": found.values.get("counted_since"),
        }

    async def on_post_enable(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._each(req, resp, self._enable, done="Enabled.", notice="requisites-enabled")

    async def on_post_disable(self, req: Request, resp: falcon.asgi.Response) -> None:
        await self._each(req, resp, self._disable, done="Disabled.", notice="requisites-disabled")

    async def _enable(self, id: str) -> object:
        return await self.deps.deals.EnableRequisite(pb.EnableRequisiteRequest(requisite_id=id))

    async def _disable(self, id: str) -> object:
        return await self.deps.deals.DisableRequisite(pb.DisableRequisiteRequest(requisite_id=id))

    async def _each(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        change: Callable[[str], Awaitable[object]],
        *,
        done: str,
        notice: str,
    ) -> None:
        """Makes the change for each ticked requisite. To repeat the form is safe."""
        form = await self.form(req)
        ids = [name.removeprefix(PREFIX) for name in form.fields if name.startswith(PREFIX)]
        path = own_path(form.text("to") or "/requisites")
        if not ids:
            leave_for(resp, path, problem="none_chosen")
            return
        outcomes = await each_of(ids, change, beside={"REQUISITE_NOT_FOUND", "VALIDATION_ERROR"})
        lines = [
            Line(
                each.id,
                f"/requisites/{each.id}",
                done if each.is_done else each.sentence,
                is_done=each.is_done,
                name=form.line(PREFIX + each.id, most=ACCOUNT_MAX_CHARACTERS),
            )
            for each in outcomes
        ]
        self.leave_or_list(req, resp, "Requisite", lines, back=path, notice=notice)


def methods_of(page: Page) -> Awaitable[Mapping[str, catalog_pb2.PaymentMethod]]:
    """Returns the payment methods by code; none while catalog is away."""
    return methods_by_code(page.deps.catalog.GetCatalog(catalog_pb2.GetCatalogRequest()))


class DaysFile(FilePage):
    """/requisites/{requisite_id}/days.csv: the days of an account, as its page shows them."""

    link = "/requisites"
    csv_name = "requisite-days"
    columns = ("day", "opened", "completed", "completed_amount")

    async def lines(self, req: Request, **params: str) -> AsyncGenerator[Lines]:
        request = pb.GetRequisiteRequest(requisite_id=params["requisite_id"])
        days = (await self.deps.deals.GetRequisite(request)).days
        yield [(each.day, str(each.opened), str(each.completed), each.amount) for each in days]


class RequisitePage(ListPage):
    """/requisites/{requisite_id}: the account, its load, its days, its deals, and the acts on it."""

    link = "/requisites"
    template = "requisite"
    csv_name = "requisite-deals"
    columns = (
        "deal_id",
        "created_at",
        "status",
        "sub_status",
        "amount_fiat",
        "currency_code",
        "reference",
        "sender_name",
        "invoice_id",
        "external_id",
        "merchant_id",
        "finished_at",
    )
    filters = (Tabs("status", "Status", STATUSES), *DAYS)

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListRequisiteDealsRequest(
            requisite_id=asked.params["requisite_id"],
            status=pb.DealStatus.Value(f"DEAL_STATUS_{asked['status'].upper() or 'UNSPECIFIED'}"),
            after_deal_id=asked.after,
        )
        if begin := SINCE.begin(asked["since"]):
            request.created_from.FromDatetime(begin)
        if end := UNTIL.end(asked["until"]):
            request.created_before.FromDatetime(end)
        deals: list[tuple[pb.Deal, pb.DealContext]] = []
        reached = None
        for _ in range(READS_MOST):
            request.limit = asked.limit - len(deals)
            found = await self.deps.deals.ListRequisiteDeals(request)
            deals += zip(found.deals, found.contexts, strict=True)
            request.after_deal_id = found.reached_deal_id
            if not found.reached_deal_id or len(deals) >= asked.limit:
                break
            reached = found.reached_at
        else:
            return Found(deals, after=request.after_deal_id, values={"reached": reached})
        return asked.found(deals, after=lambda row: row[0].deal_id, reached=None)

    def cells(self, row: Any, found: Found) -> Sequence[str]:
        deal, context = row
        return (
            deal.deal_id,
            iso(deal.created_at),
            word(deal, "status"),
            deal.sub_status,
            deal.amount_fiat,
            deal.currency_code,
            deal.reference,
            deal.sender_name,
            deal.invoice_id,
            context.external_id,
            deal.merchant_id,
            iso(deal.finished_at),
        )

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        id = req.path.rpartition("/")[2]
        story, methods, names = await asyncio.gather(
            self.deps.deals.GetRequisite(pb.GetRequisiteRequest(requisite_id=id)),
            methods_of(self),
            self.names(*(deal.merchant_id for deal, _ in found.rows)),
        )
        method = methods.get(story.requisite.method_code)
        currency = method.currency_code if method else ""
        return {
            "requisite": story.requisite,
            "story": story,
            "method": method,
            "currency": currency,
            "names": names,
            "chart": charts.bars(
                f"Completed, {currency or 'fiat'} a day",
                [each.day[5:] for each in reversed(story.days)],
                [Decimal(each.amount) for each in reversed(story.days)],
                unit=currency,
            ),
            "moments": moments_of(story.acts),
            "days_csv": f"{req.path}/days.csv" if story.days and exports(req) else "",
            "prefix": PREFIX,
            "reached": found.values.get("reached"),
        }
