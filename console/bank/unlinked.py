"""Deals that were confirmed without a bank line, on accounts whose lines are imported."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from console.calls import or_none
from console.list_page import Asked, Found, ListPage
from console.ui.filters import DAYS
from console.ui.periods import PERIOD, days_of
from console.ui.values import iso
from fiatgate.bank.v1 import bank_pb2
from fiatgate.invoices.v1 import lines_pb2 as pb
from kit.base.clock import SystemClock

if TYPE_CHECKING:
    from console.exchange import Request
    from console.wiring import Deps

COUNT_MOST: Final = 1000
UNLINKED_MOST_DAYS: Final = 31


async def unlinked(
    deps: Deps, first_day: str, last_day: str, *, after: str = "", limit: int
) -> Sequence[pb.DealOfLine]:
    """Returns the deals of these days, newest first."""
    accounts = (await deps.bank.ListAccounts(bank_pb2.ListAccountsRequest())).accounts
    request = pb.ListUnlinkedDealsRequest(
        first_day=first_day,
        last_day=last_day,
        accounts=[pb.ImportedAccount(account=each.account, first_day=each.first_day) for each in accounts],
        after_deal_id=after,
        limit=limit,
    )
    return (await deps.line_payments.ListUnlinkedDeals(request)).deals


class UnlinkedPage(ListPage):
    """/bank/unlinked and its CSV: newest first."""

    link = "/bank"
    template = "bank-unlinked"
    csv_name = "confirmed-without-a-line"
    columns = (
        *("deal_id", "invoice_id", "created_at", "amount_fiat", "currency_code", "account", "reference"),
        "sender_name",
    )
    filters = (
        replace(PERIOD, words={each: words for each, words in PERIOD.words.items() if each != "year"}),
        *DAYS,
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        first, last = days_of(asked.given, SystemClock().now().date())
        found = await unlinked(self.deps, first, last, after=asked.after, limit=asked.limit)
        return asked.found(found, after=lambda row: row.deal_id)

    def cells(self, row: pb.DealOfLine, found: Found) -> Sequence[str]:
        return (
            *(row.deal_id, row.invoice_id, iso(row.created_at), row.amount_fiat, row.currency_code),
            *(row.account, row.reference, row.sender_name),
        )


async def count_of(deps: Deps, first_day: str, last_day: str) -> int | None:
    """Returns the number of these deals, at most COUNT_MOST; None while a service is away."""
    found = await or_none(unlinked(deps, first_day, last_day, limit=COUNT_MOST))
    return None if found is None else len(found)
