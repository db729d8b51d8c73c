"""The report of a period: its totals, charts, the table, and the same as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

from console.exchange import Request
from console.list_page import ROWS_PER_CALL, Asked, Found, ListPage
from console.ui import charts
from console.ui.filters import DAYS, Merchant, Tabs, Text
from console.ui.periods import PERIOD, days_of
from console.words.reports import BY, COLUMNS, named
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.ids import parse_id

MERCHANTS_IN_CHART: Final = 12
_MINUTE: Final = 60
_HOUR: Final = 3600


class ReportsPage(ListPage):
    """/reports and /reports.csv"""

    link = "/reports"
    template = "reports"
    csv_name = "report"
    columns = (*COLUMNS, "name")
    filters = (
        Tabs("by", "Rows", words={"day": "By day", "merchant": "By merchant", "method": "By method",
                                  "currency": "By currency"}),
        PERIOD,
        *DAYS,
        Merchant(),
        Text("method", "Method", hint="its code", of="method_code"),
        Text("currency", "Currency", hint="as EUR", of="currency_code"),
    )  # fmt: skip

    async def rows(self, req: Request, asked: Asked) -> Found:
        first, last = days_of(asked.given, SystemClock().now().date())
        is_file = asked.limit == ROWS_PER_CALL
        key, _, currency = asked.after.partition(" ") if is_file else ("", "", "")
        report = await self.deps.reports.GetReport(
            pb.GetReportRequest(
                first_day=first,
                last_day=last,
                by=BY[asked["by"]],
                merchant_id=asked["merchant"],
                method_code=asked["method"],
                currency_code=asked["currency"].upper(),
                largest_first=not is_file and asked["by"] != "day",
                after_key=key,
                after_currency_code=currency,
                limit=ROWS_PER_CALL,
            )
        )
        merchants = [row.key for row in report.rows] if asked["by"] == "merchant" else []
        names = await self.names(*merchants, asked["merchant"] if parse_id(asked["merchant"]) else "")
        place = f"{report.rows[-1].key} {report.rows[-1].currency_code}" if is_file and report.more else ""
        values = {"report": report, "first_day": first, "last_day": last, "by": asked["by"], "names": names}
        # A file of numbers that are too small would look complete.
        away = ("invoices",) if is_file and not report.complete else ()
        return Found(report.rows, place, away, values)

    def cells(self, row: pb.ReportRow, found: Found) -> Sequence[str]:
        fields = [
            "" if name.endswith("_seconds") and not row.HasField(name) else str(getattr(row, name))  # type: ignore[arg-type]  # an optional field
            for name in COLUMNS
        ]
        return (*fields, found.values["names"].get(row.key, ""))

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        if not found.values:  # a filter was refused
            return {"report": None}
        report, by = found.values["report"], found.values["by"]
        totals = list(report.totals)
        return {
            "totals": [*totals, report.all] if len(totals) > 1 else totals,
            "one_currency": totals[0].currency_code if len(totals) == 1 else "",
            "columns": COLUMNS | {"key": by},
            "charts": charts_of(found) if found.rows else [],
            "named": lambda row: named(row.key, by, found.values["names"]),
            "duration": duration,
        }


def charts_of(found: Found) -> list[charts.Chart]:
    """Returns the turnover of each key, and by day also the way from created to confirmed. A day without an event is
    zero.
    """
    by, names = found.values["by"], found.values["names"]
    turnover, counts = dict[str, Decimal](), dict[str, list[int]]()
    if by == "day":
        days = _days(found.values["first_day"], found.values["last_day"])
        turnover, counts = dict.fromkeys(days, Decimal(0)), {day: [0] * len(_STEPS) for day in days}
    for row in found.rows:
        turnover[row.key] = turnover.get(row.key, Decimal(0)) + Decimal(row.turnover_usdt)
        so_far = counts.get(row.key, [0] * len(_STEPS))
        counts[row.key] = [a + b for a, b in zip(so_far, _steps(row), strict=True)]
    shown = list(turnover)[:MERCHANTS_IN_CHART] if by == "merchant" else list(turnover)
    labels = [_short_day(key) if by == "day" else named(key, by, names) for key in shown]
    made = [charts.bars("Turnover, USDT", labels, [turnover[key] for key in shown], unit="USDT")]
    if len(shown) > 1 and by == "day":
        series = [(name, [counts[key][at] for key in shown]) for at, name in enumerate(_STEPS)]
        made.append(charts.lines("From created to confirmed", labels, series, counts=True))
    return made


def _days(first: str, last: str) -> list[str]:
    began, ended = date.fromisoformat(first), date.fromisoformat(last)
    return [(began + timedelta(days=number)).isoformat() for number in range((ended - began).days + 1)]


def _short_day(day: str) -> str:
    on = date.fromisoformat(day)
    return f"{on.day} {on:%b}"


_STEPS: Final = ("created", "method chosen", "marked paid", "confirmed")


def _steps(row: pb.ReportRow) -> tuple[int, ...]:
    return row.created, row.chosen, row.marked, row.confirmed


def duration(row: pb.ReportRow, field: str) -> str:
    """Returns a time of the row as people read it: "4 min 10 s"; empty when it has none."""
    if not row.HasField(field):  # type: ignore[arg-type]  # an optional field
        return ""
    seconds: int = getattr(row, field)
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min {seconds % _MINUTE:02} s"
    return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE:02} min"
