"""The day's end of accounts: opening, what came and went, closing, and the difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from console.bank.unlinked import UNLINKED_MOST_DAYS, count_of
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.ui.filters import DAYS, Text
from console.ui.periods import PERIOD, days_of
from console.ui.values import queried
from fiatgate.bank.v1 import bank_pb2 as pb
from kit.base.clock import SystemClock


class DaysPage(ListPage):
    """/bank/days and /bank/days.csv: a row for each account and day, newest first."""

    link = "/bank"
    template = "bank-days"
    csv_name = "bank-days"
    columns = (
        *("day", "account", "currency_code", "opening", "matched", "proposed", "unmatched"),
        *("ignored", "refunds", "debits", "reversed", "closing", "difference", "lines", "open_lines"),
    )
    filters = (PERIOD, *DAYS, Text("account", "Account"))

    async def rows(self, req: Request, asked: Asked) -> Found:
        first, last = days_of(asked.given, SystemClock().now().date())
        request = pb.ListDaysRequest(
            first_day=first,
            last_day=last,
            account=asked["account"],
            after_key=asked.after,
            limit=asked.limit,
        )
        found = (await self.deps.bank.ListDays(request)).days
        is_long = date.fromisoformat(last) - date.fromisoformat(first) >= timedelta(days=UNLINKED_MOST_DAYS)
        span = () if is_long else (first, last)
        return asked.found(found, after=lambda row: row.key, span=span)

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        """Returns the number of days with a difference, and that of deals that were confirmed without a line, of a
        period that their list takes.
        """
        differing = sum(bool(Decimal(row.difference or 0)) for row in found.rows)
        if not found.values or not (span := found.values["span"]):
            return {"differing": differing, "unlinked": 0}
        path = queried("/bank/unlinked", {"since": span[0], "until": span[1]})
        unlinked = await count_of(self.deps, *span)
        return {"differing": differing, "unlinked": unlinked, "unlinked_path": path}

    def cells(self, row: Any, found: Found) -> Sequence[str]:
        return [str(getattr(row, name)) for name in self.columns]
