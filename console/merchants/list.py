"""The list of merchants with its filters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.ui.filters import DAYS, SINCE, UNTIL, Choice, Tabs, Text
from console.ui.values import iso, word
from fiatgate.merchants.v1 import merchants_pb2 as pb

OWNER_BLOCKED: Final = "owner_blocked"
STATUSES: Final[Mapping[str, pb.MerchantStatus.ValueType]] = {
    "inactive": pb.MERCHANT_STATUS_INACTIVE,
    "active": pb.MERCHANT_STATUS_ACTIVE,
    "banned": pb.MERCHANT_STATUS_BANNED,
}
PER_CALL: Final = 200
"""The most merchants of one call: each may have long lists."""


def state_of(merchant: pb.Merchant) -> str:
    """Returns the state in one word: a blocked owner counts before the merchant's own state."""
    return OWNER_BLOCKED if merchant.owner_blocked else word(merchant, "status")


class MerchantsPage(ListPage):
    """/merchants and /merchants.csv: newest first."""

    link = "/merchants"
    template = "merchants"
    csv_name = "merchants"
    columns = (
        "merchant_id",
        "name",
        "state",
        "owner_email",
        "category_code",
        "commission",
        "client_share",
        "created_at",
        "callback_url",
        "allowed_currencies",
        "allowed_methods",
    )
    filters = (
        Tabs(
            "state",
            "State",
            {
                "": "All",
                "active": "Active",
                "inactive": "Inactive",
                "banned": "Banned",
                OWNER_BLOCKED: "Owner blocked",
            },
        ),
        Text("name", "Name", hint="words, or their beginnings"),
        Text("owner", "Owner", hint="e-mail address", of="owner_email"),
        Choice("category", "Category", of="category_code"),
        *DAYS,
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        asked = replace(asked, limit=min(asked.limit, PER_CALL))
        request = pb.ListMerchantsRequest(
            status=STATUSES.get(asked["state"], pb.MERCHANT_STATUS_UNSPECIFIED),
            owner_blocked=asked["state"] == OWNER_BLOCKED,
            name=asked["name"],
            owner_email=asked["owner"],
            category_code=asked["category"],
            older_than_merchant_id=asked.after,
            limit=asked.limit,
        )
        if begin := SINCE.begin(asked["since"]):
            request.created_from.FromDatetime(begin)
        if end := UNTIL.end(asked["until"]):
            request.created_before.FromDatetime(end)
        found = (await self.deps.merchants.ListMerchants(request)).merchants
        return asked.found(found, after=lambda each: each.merchant_id, state_of=state_of)

    def cells(self, row: pb.Merchant, found: Found) -> Sequence[str]:
        return (
            row.merchant_id,
            row.name,
            state_of(row),
            row.owner_email,
            row.category_code,
            row.category_commission,
            row.client_share,
            iso(row.created_at),
            row.callback_url,
            " ".join(row.allowed_currencies),
            " ".join(row.allowed_methods),
        )

    async def choices(self, req: Request) -> Mapping[str, Mapping[str, str]]:
        categories = (await self.deps.merchants.ListCategories(pb.ListCategoriesRequest())).categories
        return {"category": {each.code: each.code for each in categories}}
