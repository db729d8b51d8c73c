"""Changes of merchants' balances, by day, month or merchant: the columns add up to the change in the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from console.exchange import Request
from console.list_page import ROWS_PER_CALL, Asked, Found, ListPage
from console.ui.filters import DAYS, Merchant, Tabs
from console.ui.periods import PERIOD, days_of
from console.words.reports import BALANCE_COLUMNS, balance_total, balances, named
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.clock import SystemClock

MOST_SHOWN: Final = 400
"""More than the days of a year: only of merchants the page leaves some to the file."""


_BY: Final = {"day": "By day", "month": "By month", "merchant": "By merchant"}


class BalancesPage(ListPage):
    """/reports/balances and its CSV"""

    link = "/reports"
    template = "changes"
    csv_name = "balances"
    columns = (*BALANCE_COLUMNS, "name")
    filters = (
        Tabs("by", "Rows", words=_BY),
        PERIOD,
        *DAYS,
        Merchant(),
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        first, last = days_of(asked.given, SystemClock().now().date())
        by, of = asked["by"], {"first_day": first, "last_day": last, "merchant_id": asked["merchant"]}
        (credits, complete), moved = await asyncio.gather(self._credits(by, of), self._moved(by, of))
        found = balances(by, credits, moved)
        names = await self.names(*(row["key"] for row in found)) if by == "merchant" else {}
        if asked["merchant"] and not self.deps.surface.has_merchants:
            names = {**names, **await self.names(asked["merchant"])}
        # A file of numbers that are too small would look complete.
        away = ("invoices",) if asked.limit == ROWS_PER_CALL and not complete else ()
        return Found(
            found,
            "",
            away,
            {"by": by, "names": names, "complete": complete, "first_day": first, "last_day": last},
        )

    def cells(self, row: Mapping[str, str], found: Found) -> Sequence[str]:
        return (*(row[each] for each in BALANCE_COLUMNS), found.values["names"].get(row["key"], ""))

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        if not found.values:  # a filter was refused
            return {"by": ""}
        by, names = found.values["by"], found.values["names"]
        return {
            "shown": found.rows[:MOST_SHOWN],
            "total": balance_total(found.rows),
            "columns": BALANCE_COLUMNS | {"key": by},
            "named": lambda row: named(row["key"], by, names),
        }

    async def _credits(self, by: str, of: Mapping[str, Any]) -> tuple[Sequence[invoices_pb2.ReportRow], bool]:
        """Returns the rows of the report of payments, and whether it is complete."""
        kind = invoices_pb2.REPORT_BY_MERCHANT if by == "merchant" else invoices_pb2.REPORT_BY_DAY
        request = invoices_pb2.GetReportRequest(by=kind, limit=ROWS_PER_CALL, **of)
        found: list[invoices_pb2.ReportRow] = []
        while True:
            page = await self.deps.reports.GetReport(request)
            found += page.rows
            if not page.more:
                return found, page.complete
            request.after_key, request.after_currency_code = found[-1].key, found[-1].currency_code

    async def _moved(self, by: str, of: Mapping[str, Any]) -> Sequence[pb.Movements]:
        kind = pb.MovementsBy.Value(f"MOVEMENTS_BY_{by.upper()}")
        request = pb.GetMovementsRequest(by=kind, limit=ROWS_PER_CALL, **of)
        found: list[pb.Movements] = []
        while True:
            page = (await self.deps.withdrawals.GetMovements(request)).movements
            found += page
            if len(page) < ROWS_PER_CALL:
                return found
            request.after_key = found[-1].key


class OwnBalancesPage(BalancesPage):
    """/balance/changes and its CSV at the dashboard: those of the session's merchant."""

    link = "/balance"
    filters = (
        Tabs("by", "Rows", words={each: _BY[each] for each in ("month", "day")}),
        replace(PERIOD, words={"year": PERIOD.words["year"], **PERIOD.words}),
        *DAYS,
        Merchant(),
    )
