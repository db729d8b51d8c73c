"""A merchant as itself and its customers see it, read-only: balance, newest invoices and webhooks, payment methods."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Final

import falcon.asgi

from console.calls import or_none
from console.exchange import Request
from console.file_page import Lines
from console.merchants.merchant import OneMerchant
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2

ROWS: Final = 10
REFUSED: Final[Mapping[str, str]] = {
    "OWNER_BLOCKED": "its owner is blocked",
    "MERCHANT_BLOCKED": "it is banned",
    "MERCHANT_NOT_ACTIVE": "it is not activated",
    "DEALS_SYSTEM_DISABLED": "the deals system is switched off",
}
OBSTACLES: Final[Mapping[str, str]] = {
    "method_inactive": "the method is inactive",
    "currency_disabled": "the currency is disabled",
    "currency_not_allowed": "the merchant may use other currencies only",
    "method_not_allowed": "the merchant may use other methods only",
    "category_missing": "the merchant has no category",
    "category_not_found": "the merchant’s category does not exist",
    "commission_invalid": "the commissions of category and method are more than 100 % together",
    "rate_not_found": "the currency never had a rate",
    "rate_stale": "the rate has lapsed",
    "rate_invalid": "the rate is no number above zero",
}


class ViewPage(OneMerchant):
    """/merchants/{merchant_id}/view; its file has the methods."""

    csv_name = "merchant-methods"
    columns = (
        *("method_code", "name", "currency", "offered", "obstacles", "least", "most"),
        *("total_percent", "client_percent", "merchant_percent", "rate"),
    )

    async def on_get(self, req: Request, resp: falcon.asgi.Response, merchant_id: str) -> None:
        merchant = await self.merchant(merchant_id)
        balance, invoices, webhooks, offered = await asyncio.gather(
            or_none(
                self.deps.withdrawals.GetBalance(withdrawals_pb2.GetBalanceRequest(merchant_id=merchant_id))
            ),
            or_none(
                self.deps.deals.ListAllInvoices(
                    invoices_pb2.ListAllInvoicesRequest(merchant_id=merchant_id, limit=ROWS)
                )
            ),
            or_none(
                self.deps.webhooks.ListEvents(
                    webhooks_pb2.ListEventsRequest(merchant_id=merchant_id, limit=ROWS)
                )
            ),
            or_none(
                self.deps.deals.ListMerchantMethods(
                    invoices_pb2.ListMerchantMethodsRequest(merchant_id=merchant_id)
                )
            ),
        )
        methods = [(each.method, list(obstacles(each))) for each in offered.methods] if offered else []
        common = (
            [why for why in methods[0][1] if all(why in found for _, found in methods)] if methods else []
        )
        self.show_merchant(
            req,
            resp,
            "merchant-view",
            merchant,
            csv=self.file(req),
            balance=balance,
            invoices=invoices and invoices.invoices,
            webhooks=webhooks and webhooks.events,
            refused_because=offered and REFUSED.get(offered.refused, offered.refused),
            common=common,
            methods=offered
            and [(each, found, [why for why in found if why not in common]) for each, found in methods],
        )

    on_head = on_get

    async def lines(self, req: Request, **params: str) -> AsyncGenerator[Lines]:
        request = invoices_pb2.ListMerchantMethodsRequest(merchant_id=params["merchant_id"])
        offered = await self.deps.deals.ListMerchantMethods(request)
        refused = [REFUSED.get(offered.refused, offered.refused)] if offered.refused else []
        yield [_cells(each.method, [*refused, *obstacles(each)]) for each in offered.methods]


def _cells(offered: catalog_pb2.MerchantMethod, obstacles: Sequence[str]) -> Sequence[str]:
    method = offered.method
    return (
        *(method.method_code, method.name, offered.currency.code),
        *("no" if obstacles else "yes", "; ".join(obstacles), method.min_sum, method.max_sum),
        *(offered.total_percent, offered.client_percent, offered.merchant_percent, offered.rate),
    )


def obstacles(offered: invoices_pb2.OfferedMethod) -> Iterator[str]:
    """Yields why the method is not offered, in words."""
    for number in offered.method.obstacles:
        named = catalog_pb2.MethodObstacle.Name(number).removeprefix("METHOD_OBSTACLE_").lower()
        yield OBSTACLES.get(named, named.replace("_", " "))
    if offered.no_place:
        yield offered.no_place
