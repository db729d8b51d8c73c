"""Reports of what the business earned, and the worker that sums each event into its day."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.proto import most_of
from kit.rpc import values
from services.invoices.store import daily
from services.invoices.store.daily import By, ReportFilter, Sums
from services.invoices.wiring import Deps

PAGE: Final = 5000
LATE: Final = timedelta(minutes=5)
"""A row is visible long before this after the time in it: the database ends slow transactions after seconds."""
MOST_DAYS: Final = 366


@dataclass(frozen=True)
class Report:
    """Rows by key and currency, a total for each currency, and one for all of them without amounts in fiat."""

    rows: Sequence[Sums]
    totals: Sequence[Sums]
    all: Sums
    more: bool
    complete: bool


def sum_days(deps: Deps) -> bool:
    """Adds a page of events to the sums of their days; returns true when there may be more."""
    with deps.db.transaction() as tx:
        return daily.add_next(tx, until=deps.clock.now() - LATE, page=PAGE)


def get_report(
    deps: Deps,
    *,
    first_day: str,
    last_day: str,
    by: By,
    merchant_id: str = "",
    method_code: str = "",
    currency_code: str = "",
    largest_first: bool = False,
    after: tuple[str, str] = ("", ""),
    limit: int = 0,
) -> Report:
    """Returns the sums of the events of these days. `after` is the key and currency of a row.

    Raises VALIDATION_ERROR.
    """
    request = pb.GetReportRequest
    wanted = ReportFilter(
        first_day=values.parsed("first_day", first_day, date.fromisoformat),
        last_day=values.parsed("last_day", last_day, date.fromisoformat),
        merchant_id=values.uuid("merchant_id", merchant_id) if merchant_id else None,
        method_code=values.text("method_code", method_code, least=0, most=most_of(request, "method_code")),
        currency_code=values.text(
            "currency_code", currency_code, least=0, most=most_of(request, "currency_code")
        ),
    )
    if not timedelta(0) <= wanted.last_day - wanted.first_day < timedelta(days=MOST_DAYS):
        raise values.invalid("last_day", f"Expected the first day or a later one, at most {MOST_DAYS} days")
    if largest_first and any(after):
        raise values.invalid("after_key", "Expected none with largest_first")
    limit = values.rows(limit, default=values.LIST_MOST_ROWS)
    with deps.db.autocommit() as connection:
        summed = daily.report(connection, wanted, by)
    rows = [row for row in summed.rows if (row.key, row.currency_code) > after]
    if largest_first:
        rows.sort(key=lambda row: (-row.turnover_usdt, -row.created, row.key, row.currency_code))
    return Report(
        rows=rows[:limit],
        totals=_by_currency(summed.rows),
        all=_together(summed.rows),
        more=len(rows) > limit,
        complete=summed.complete,
    )


def _by_currency(rows: Iterable[Sums]) -> Sequence[Sums]:
    of_currency: dict[str, list[Sums]] = defaultdict(list)
    for row in rows:
        of_currency[row.currency_code].append(row)
    return [
        replace(
            _together(of_currency[each]),
            currency_code=each,
            turnover=sum((row.turnover for row in of_currency[each]), Decimal(0)),
            commission=sum((row.commission for row in of_currency[each]), Decimal(0)),
        )
        for each in sorted(of_currency)
    ]


def _together(rows: Sequence[Sums]) -> Sums:
    """Returns the sums of all rows, without those in fiat."""
    spans: Counter[int] = Counter()
    for row in rows:
        spans.update(row.spans)
    return Sums(
        key="",
        currency_code="",
        created=sum(row.created for row in rows),
        opened=sum(row.opened for row in rows),
        replaced=sum(row.replaced for row in rows),
        marked=sum(row.marked for row in rows),
        confirmed=sum(row.confirmed for row in rows),
        rejected=sum(row.rejected for row in rows),
        turnover_usdt=sum((row.turnover_usdt for row in rows), Decimal(0)),
        credited_usdt=sum((row.credited_usdt for row in rows), Decimal(0)),
        spans=spans,
    )
