"""`fiatgate reports`: what the business earned, by day, merchant, method or currency."""

from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from typing import Annotated, Any, Final

import typer

from cli import connection, ids, listing, names, output
from cli.command import option, shaped
from cli.listing import Table
from cli.verifying import every
from console.words.reports import BALANCE_COLUMNS, BY, COLUMNS, NO_METHOD, balance_total, balances
from fiatgate.invoices.v1 import invoices_pb2 as pb
from fiatgate.withdrawals.v1 import withdrawals_pb2
from kit.base.clock import SystemClock
from kit.rpc.values import LIST_MOST_ROWS

EXAMPLE: Final = "fiatgate reports --by merchant --month 2026-11"

STACKS: Final = (
    "key currency_code | created chosen | marked rejected | confirmed conversion | turnover commission"
    " | turnover_usdt commission_usdt credited_usdt | median_seconds p95_seconds"
)
BALANCES_BY: Final = ("day", "month", "merchant")
BALANCE_STACKS: Final = "key | credited received | by_hand reversed | refunded withdrawn | change"
STILL_SUMMED: Final = "[bold red]Earlier days are still being summed: the numbers are too small.[/bold red]"


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
    of_balances: Annotated[
        bool,
        typer.Option("--balances", help="The changes of balances: by day, month or merchant."),
    ] = False,
) -> None:
    """Report turnover, conversion, commissions and times to confirmation; or the changes of balances.

    An event counts on the UTC day on which it happened. Times are from "I have paid" to the confirmation, right to a
    twentieth, or to a second. The columns of balances add up to the change in the ledger.
    """
    known = BALANCES_BY if of_balances else tuple(BY)
    if by not in known:
        raise typer.BadParameter(f"{by!r} is none of {', '.join(known)}", param_hint="--by")
    begin, end = _period(SystemClock().now().date(), days, month, first_day, last_day)
    request.first_day, request.last_day, request.limit = begin, end, LIST_MOST_ROWS
    if of_balances:
        _balances(request, by)
        return
    request.by = BY[by]
    if output.mode.csv:
        rows = (output.plain(row) for page in _pages(request) for row in page.rows)
        listing.write_csv(rows, " | ".join(COLUMNS))
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
        output.note(STILL_SUMMED)


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


def _pages(request: pb.GetReportRequest) -> Iterator[pb.GetReportResponse]:
    more = True
    while more:
        page = connection.reports().GetReport(request)
        yield page
        more = page.more
        if more:
            request.after_key, request.after_currency_code = page.rows[-1].key, page.rows[-1].currency_code


def _balances(request: pb.GetReportRequest, by: str) -> None:
    if request.method_code or request.currency_code:
        raise typer.BadParameter("a balance has no method and no currency", param_hint="--balances")
    request.by = pb.REPORT_BY_MERCHANT if by == "merchant" else pb.REPORT_BY_DAY
    pages = list(_pages(request))
    wanted = withdrawals_pb2.GetMovementsRequest(
        first_day=request.first_day,
        last_day=request.last_day,
        by=withdrawals_pb2.MovementsBy.Value(f"MOVEMENTS_BY_{by.upper()}"),
        merchant_id=request.merchant_id,
    )
    moved = every(wanted, connection.withdrawals().GetMovements, "movements", "key")
    rows = balances(by, (row for page in pages for row in page.rows), moved)
    if output.mode.csv:
        listing.write_csv(rows, " | ".join(BALANCE_COLUMNS))
    elif output.mode.json:
        output.print_json(rows)
    else:
        merchants = names.of_merchants(row["key"] for row in rows) if by == "merchant" else {}
        shown = [{**row, "key": merchants.get(row["key"], row["key"])} for row in rows]
        columns = " | ".join(
            f"{path}: {heading}" for path, heading in (BALANCE_COLUMNS | {"key": by}).items()
        )
        table = Table(columns=columns, stacks=BALANCE_STACKS, empty="No balance changed on these days")
        table.show([*shown, *([dict(balance_total(rows))] if len(rows) > 1 else [])])
    if not all(page.complete for page in pages):
        output.note(STILL_SUMMED)


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
