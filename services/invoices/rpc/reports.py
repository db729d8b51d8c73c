"""ReportsService: what the business earned."""

from typing import Final

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.money import fiat_text, share_text, usdt_text
from kit.rpc import values
from kit.rpc.methods import Methods
from services.invoices.domain.spans import percentile_seconds
from services.invoices.operations import reports
from services.invoices.store.daily import By, Sums
from services.invoices.wiring import Deps

_BY = {
    pb.REPORT_BY_UNSPECIFIED: By.DAY,
    pb.REPORT_BY_DAY: By.DAY,
    pb.REPORT_BY_MERCHANT: By.MERCHANT,
    pb.REPORT_BY_METHOD: By.METHOD,
    pb.REPORT_BY_CURRENCY: By.CURRENCY,
}


def get_report(deps: Deps, request: pb.GetReportRequest) -> pb.GetReportResponse:
    if request.by not in _BY:
        raise values.invalid("by", "Expected day, merchant, method or currency")
    report = reports.get_report(
        deps,
        first_day=request.first_day,
        last_day=request.last_day,
        by=_BY[request.by],
        merchant_id=request.merchant_id,
        method_code=request.method_code,
        currency_code=request.currency_code,
        largest_first=request.largest_first,
        after=(request.after_key, request.after_currency_code),
        limit=request.limit,
    )
    of_chosen = bool(request.method_code)
    of_rows = of_chosen or request.by == pb.REPORT_BY_METHOD
    return pb.GetReportResponse(
        rows=[_row_to_message(row, of_chosen=of_rows) for row in report.rows],
        totals=[_row_to_message(row, of_chosen=of_chosen) for row in report.totals],
        all=_row_to_message(report.all, of_chosen=of_chosen),
        more=report.more,
        complete=report.complete,
    )


def _row_to_message(row: Sums, *, of_chosen: bool) -> pb.ReportRow:
    in_fiat, chosen = bool(row.currency_code), row.opened - row.replaced
    begun = chosen if of_chosen else row.created
    return pb.ReportRow(
        key=row.key,
        currency_code=row.currency_code,
        created=row.created,
        chosen=chosen,
        marked=row.marked,
        confirmed=row.confirmed,
        rejected=row.rejected,
        turnover=fiat_text(row.turnover) if in_fiat else "",
        commission=fiat_text(row.commission) if in_fiat else "",
        turnover_usdt=usdt_text(row.turnover_usdt),
        commission_usdt=usdt_text(row.turnover_usdt - row.credited_usdt),
        credited_usdt=usdt_text(row.credited_usdt),
        median_seconds=percentile_seconds(row.spans, 50),
        p95_seconds=percentile_seconds(row.spans, 95),
        conversion=share_text(row.confirmed, begun) if begun > 0 else "",
    )


METHODS: Final[Methods] = {"GetReport": get_report}
