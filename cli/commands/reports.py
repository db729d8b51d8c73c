"""`fiatgate reports`: what the business earned, by day, merchant, method or currency."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Annotated, Any, Final

import typer

from cli import connection, ids, listing, names, output
from cli.command import option, shaped
from cli.listing import Table
from console.words.reports import BY, COLUMNS, NO_METHOD
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.clock import SystemClock
from kit.rpc.values import LIST_MOST_ROWS

EXAMPLE: Final = "fiatgate reports --by merchant --month 2026-11"

STACKS: Final = (
    "key currency_code | created chosen | marked rejected | confirmed conversion | turnover commission"
    " | turnover_usdt commission_usdt credited_usdt | median_seconds p95_seconds"
)


@shaped(
    pb.GetReportRequest,
    *("by", "days", "month", "first_day", "last_day"),
    ids.of_merchant(),
    option("method_code", "CODE", "Only this payment method.", "--method"),
    option("currency_code", "CODE", "Only this currency.", "--currency"),
    modes="csv",
)
def reports(
    request: pb.GetReportRequest,
    *,
    by: Annotated[
        str, typer.Option(metavar="KEY", help="day, merchant, method or currency: the rows.")
    ] = "day",
    days: Annotated[
        int, typer.Option(metavar="N", min=1, max=366, help="The last N days, today included.")
    ] = 7,
    month: Annotated[str, typer.Option(metavar="MONTH", help="As 2026-11, in place of --days.")] = "",
    first_day: Annotated[
        str, typer.Option("--from", metavar="DAY", help="As 2026-11-22, in UTC, in place of --days.")
    ] = "",
    last_day: Annotated[
        str, typer.Option("--to", metavar="DAY", help="The last day, with --from; today without it.")
    ] = "",
) -> None:
    """Report turnover, conversion, commissions and times to confirmation.

    An event counts on the UTC day on which it happened. Times are from "I have paid" to the confirmation, right to a
    twentieth, or to a second.
    """
    if by not in BY:
        raise typer.BadParameter(f"{by!r} is none of {', '.join(BY)}", param_hint="--by")
    begin, end = _period(SystemClock().now().date(), days, month, first_day, last_day)
    request.first_day, request.last_day, request.by, request.limit = begin, end, BY[by], LIST_MOST_ROWS
    if output.mode.csv:
        listing.write_csv(_all_rows(request), " | ".join(COLUMNS))
        return
    request.largest_first = by != "day"
    report = connection.reports().GetReport(request)
    if output.mode.json:
        output.print_json(output.plain(report))
    else:
        _print(report, by, f"{begin} to {end}" if begin != end else begin)
    if report.more:
        output.note(f"[dim]Only the largest {LIST_MOST_ROWS} rows: --csv has all.[/dim]")
    if not report.complete:
        output.note("[bold red]Earlier days are still being summed: the numbers are too small.[/bold red]")


def _period(today: date, days: int, month: str, first_day: str, last_day: str) -> tuple[str, str]:
    """Returns the first and the last day. Raises typer.BadParameter for two periods at once."""
    if month and (first_day or last_day):
        raise typer.BadParameter("give either a month or days", param_hint="--month")
    if month:
        try:
            begin = date.fromisoformat(f"{month}-01")
        except ValueError:
            raise typer.BadParameter(f"{month!r} is no month such as 2026-11", param_hint="--month") from None
        return begin.isoformat(), (
            (begin + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        ).isoformat()
    if last_day and not first_day:
        raise typer.BadParameter("it needs --from", param_hint="--to")
    begin_text = first_day or (today - timedelta(days=days - 1)).isoformat()
    return begin_text, last_day or today.isoformat()


def _all_rows(request: pb.GetReportRequest) -> Iterator[dict[str, Any]]:
    more = True
    while more:
        page = connection.reports().GetReport(request)
        yield from map(output.plain, page.rows)
        more = page.more
        if more:
            request.after_key, request.after_currency_code = page.rows[-1].key, page.rows[-1].currency_code


def _print(report: pb.GetReportResponse, by: str, period: str) -> None:
    merchants = names.of_merchants(row.key for row in report.rows) if by == "merchant" else {}
    rows = [output.plain(row) | {"key": _named(row.key, by, merchants)} for row in report.rows]
    columns = " | ".join(f"{path}: {heading}" for path, heading in (COLUMNS | {"key": by}).items())
    table = Table(columns=columns, stacks=STACKS, empty="Nothing happened on these days")
    above = f"{period}: {report.all.turnover_usdt} USDT of turnover, {report.all.confirmed} confirmed."
    table.show([*rows, *_totals(report)], above=above)


def _named(key: str, by: str, merchants: dict[str, str]) -> str:
    return merchants[key] if by == "merchant" else key or NO_METHOD


def _totals(report: pb.GetReportResponse) -> Sequence[dict[str, Any]]:
    totals = [output.plain(row) | {"key": "all"} for row in report.totals if len(report.rows) > 1]
    if len(totals) > 1:
        totals.append(output.plain(report.all) | {"key": "all", "currency_code": "all"})
    return totals
