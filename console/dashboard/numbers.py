"""The numbers of the start page: a period beside the one before, the newest payments, what needs attention.

The services keep the sums. The page itself counts only the invoices that are still open and the failed webhooks.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final

from console.calls import invoices_of, or_none
from console.exchange import Request
from console.page import Page
from console.ui import charts
from console.ui.values import word
from console.words.keys import idle_words
from console.words.refunds import waits_long
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import refunds_pb2, withdrawals_pb2
from kit.base.clock import SystemClock
from kit.base.money import share_text, usdt_text
from kit.base.proto import datetime_from
from kit.rpc.errors import Refused

PERIODS: Final = {"1": "Today", "7": "7 days", "30": "30 days", "90": "90 days"}
USUAL: Final = "30"
PAYMENTS: Final = 5
OPEN_MOST: Final = 200
"""More open invoices than these are not counted."""
AT_MOST: Final = 20
"""More webhooks than these are not counted: `20 or more`."""
NOTICES_MOST: Final = 5
FAILING: Final = timedelta(hours=1)
GIVEN_UP: Final = timedelta(days=7)
"""The ages up to which failed webhooks and refunds stand on the page: older ones are in the list."""
_CLOCK: Final = SystemClock()


@dataclass
class Day:
    """The sums of one day over all currencies."""

    day: str
    created: int = 0
    confirmed: int = 0
    credited_usdt: Decimal = Decimal(0)

    @property
    def success(self) -> str:
        """Confirmed of 100 created; empty without a created one."""
        return share_text(self.confirmed, self.created) if self.created else ""

    @property
    def credited(self) -> str:
        return usdt_text(self.credited_usdt)


LATE_SHOWN: Final = 5
"""Questions about late money; the list has them all."""


@dataclass(frozen=True)
class Figure:
    """A number of the period, and of the one before it."""

    now: Decimal
    before: Decimal
    currency: str = ""

    @property
    def change(self) -> str:
        """In percent of the period before; empty when that had none."""
        if not self.before:
            return ""
        change = ((self.now - self.before) * 100 / self.before).quantize(Decimal(1))
        return f"{change:+f}\N{NO-BREAK SPACE}%".replace("-", "\N{MINUS SIGN}")


@dataclass(frozen=True)
class Figures:
    """The figures of a period.

    sales    what customers paid, by currency
    success  paid of 100 created that have ended; empty: none has
    ended    created less those that are still open
    """

    sales: Sequence[Figure]
    due: Figure
    paid: Figure
    success: str
    success_before: str
    ended: int
    open: str


async def numbers_of(page: Page, req: Request) -> Mapping[str, Any]:
    """Returns the values of the page. A service that is away leaves out its own, and is named in `away`."""
    merchant_id = req.exchange.signed_in.merchant_id
    today = _CLOCK.now().date()
    chosen = _chosen(req)
    length = timedelta(days=int(chosen))
    first = today - length + timedelta(days=1)
    reads_balance, reads_keys = page.may(req, "finance", "viewer"), page.may(req, "developer")
    (
        (balance, book, refunds, withdrawals),
        keys,
        (report, before),
        (payments, waiting, late),
        (dead, failing),
    ) = await asyncio.gather(
        _of_withdrawals(page, merchant_id if reads_balance else ""),
        _keys(page, merchant_id) if reads_keys else _nothing(),
        asyncio.gather(
            _report(page, merchant_id, first, today),
            _report(page, merchant_id, first - length, first - timedelta(days=1)),
        ),
        asyncio.gather(
            or_none(page.deps.deals.ListAllInvoices(_payments(merchant_id))),
            or_none(page.deps.deals.ListAllInvoices(_open(merchant_id, first))),
            or_none(page.deps.deals.ListCases(_undecided(merchant_id))),
        ),
        asyncio.gather(
            or_none(page.deps.webhooks.ListEvents(_given_up(merchant_id))),
            or_none(page.deps.webhooks.ListEvents(_failing(merchant_id))),
        ),
    )
    shown = [*_shown(refunds)]
    orders = await invoices_of(page.deps.deals, (each.invoice_id for each in shown), merchant_id=merchant_id)
    days = days_of(report.rows) if report else []
    asked: dict[str, list[object]] = {
        "invoices": [report, before, payments, waiting, late],
        "webhooks": [dead, failing],
    }
    asked |= {"withdrawals": [balance, book, *(refunds or ()), withdrawals]} if reads_balance else {}
    asked |= {"merchants": [keys]} if reads_keys else {}
    return {
        "periods": [(f"/?days={each}", words, each == chosen) for each, words in PERIODS.items()],
        "period": PERIODS[chosen],
        "length": length.days,
        "balance": balance,
        "new_addresses": [each for each in book.addresses if each.waits] if book else [],
        "waiting_refunds": [(each, waits_long(each)) for each in shown if word(each, "status") != "failed"],
        "failed_refunds": [each for each in shown if word(each, "status") == "failed"],
        "orders": orders or {},
        "by_operator": _by_operator(withdrawals) if withdrawals else [],
        "report": report,
        "figures": figures_of(report, before, waiting) if report and before and waiting else None,
        "payments": sorted(payments.invoices, key=_paid_at, reverse=True) if payments else None,
        "days": days[::-1],
        "charts": charts_of(days, first, today) if days and length.days > 1 else [],
        "dead": _number(dead.events if dead else ()),
        "failing": _number(failing.events if failing else ()),
        "late": list(zip(late.cases, late.contexts, strict=True)) if late else [],
        "keys": keys,
        "idle_keys": _idle(keys.keys) if keys else [],
        "away": away_of(asked),
    }


def _chosen(req: Request) -> str:
    asked_for = req.get_param("days") or USUAL
    return asked_for if asked_for in PERIODS else USUAL


def figures_of(
    report: invoices_pb2.GetReportResponse,
    before: invoices_pb2.GetReportResponse,
    waiting: invoices_pb2.ListAllInvoicesResponse,
) -> Figures:
    """Returns the figures. Open invoices are no failures: they count in no rate."""
    turnover, earlier = (
        {each.currency_code: Decimal(each.turnover or 0) for each in of.totals} for of in (report, before)
    )
    sales = [
        Figure(turnover.get(each, Decimal(0)), earlier.get(each, Decimal(0)), each)
        for each in sorted({*turnover, *earlier})
    ]
    now, then = report.all, before.all
    ended = max(now.created - len(waiting.invoices), 0)
    return Figures(
        sales=[each for each in sales if each.now or each.before],
        due=Figure(Decimal(now.credited_usdt or 0), Decimal(then.credited_usdt or 0), "USDT"),
        paid=Figure(Decimal(now.confirmed), Decimal(then.confirmed)),
        success=share_text(min(now.confirmed, ended), ended) if ended else "",
        success_before=then.conversion,
        ended=ended,
        open=_number(waiting.invoices, most=OPEN_MOST),
    )


def _paid_at(invoice: invoices_pb2.Invoice) -> int:
    return invoice.finished_at.ToNanoseconds()


def away_of(asked: Mapping[str, Sequence[object]]) -> list[str]:
    """Returns the services of which an answer is missing, by all answers of each."""
    return [service for service, answers in asked.items() if None in answers]


def _undecided(merchant_id: str) -> invoices_pb2.ListCasesRequest:
    return invoices_pb2.ListCasesRequest(
        merchant_id=merchant_id, undecided=True, oldest_first=True, limit=LATE_SHOWN
    )


async def _nothing() -> None:
    return None


async def _of_withdrawals(
    page: Page, merchant_id: str
) -> tuple[
    withdrawals_pb2.GetBalanceResponse | None,
    withdrawals_pb2.ListAddressesResponse | None,
    list[refunds_pb2.ListRefundsResponse | None] | None,
    withdrawals_pb2.ListAllWithdrawalsResponse | None,
]:
    """Returns the balance, the address book, refunds without an account, the newest failed ones, and the newest
    withdrawals.
    """
    if not merchant_id:
        return None, None, None, None
    return await asyncio.gather(
        or_none(page.deps.withdrawals.GetBalance(withdrawals_pb2.GetBalanceRequest(merchant_id=merchant_id))),
        or_none(
            page.deps.withdrawals.ListAddresses(withdrawals_pb2.ListAddressesRequest(merchant_id=merchant_id))
        ),
        asyncio.gather(
            *(or_none(page.deps.refunds.ListRefunds(each(merchant_id))) for each in (_waiting, _failed))
        ),
        or_none(page.deps.withdrawals.ListAllWithdrawals(_newest(merchant_id))),
    )


def _shown(found: Iterable[refunds_pb2.ListRefundsResponse | None] | None) -> Iterator[refunds_pb2.Refund]:
    """Yields the refunds that wait, and those that failed not long ago."""
    for each in (refund for answer in found or () if answer for refund in answer.refunds):
        if not each.HasField("finished_at") or _CLOCK.now() - datetime_from(each.finished_at) < GIVEN_UP:
            yield each


async def _keys(page: Page, merchant_id: str) -> merchants_pb2.ListApiKeysResponse | None:
    request = merchants_pb2.ListApiKeysRequest(merchant_id=merchant_id)
    try:
        return await or_none(page.deps.merchants.ListApiKeys(request))
    except Refused as refused:  # accounts may know a member of a merchant that is not made yet
        if refused.reason != "MERCHANT_NOT_FOUND":
            raise
        return merchants_pb2.ListApiKeysResponse()


def _idle(keys: Sequence[merchants_pb2.ApiKey]) -> list[tuple[merchants_pb2.ApiKey, str]]:
    """Returns the active keys that no program seems to need, each with the reason."""
    now = _CLOCK.now()
    return [(key, words) for key in keys if (words := idle_words(key, now))]


async def _report(
    page: Page, merchant_id: str, first: date, last: date
) -> invoices_pb2.GetReportResponse | None:
    request = invoices_pb2.GetReportRequest(
        first_day=f"{first}", last_day=f"{last}", by=invoices_pb2.REPORT_BY_DAY, merchant_id=merchant_id
    )
    return await or_none(page.deps.reports.GetReport(request))


def _payments(merchant_id: str) -> invoices_pb2.ListAllInvoicesRequest:
    paid = invoices_pb2.INVOICE_STATUS_SUCCESS
    return invoices_pb2.ListAllInvoicesRequest(merchant_id=merchant_id, status=paid, limit=PAYMENTS)


def _open(merchant_id: str, first: date) -> invoices_pb2.ListAllInvoicesRequest:
    pending = invoices_pb2.INVOICE_STATUS_PENDING
    request = invoices_pb2.ListAllInvoicesRequest(merchant_id=merchant_id, status=pending, limit=OPEN_MOST)
    request.created_from.FromDatetime(datetime.combine(first, time(), UTC))
    return request


def _waiting(merchant_id: str) -> refunds_pb2.ListRefundsRequest:
    return refunds_pb2.ListRefundsRequest(
        merchant_id=merchant_id,
        statuses=[refunds_pb2.REFUND_STATUS_WAITING_FOR_ACCOUNT],
        limit=NOTICES_MOST,
        oldest_first=True,
    )


def _failed(merchant_id: str) -> refunds_pb2.ListRefundsRequest:
    return refunds_pb2.ListRefundsRequest(
        merchant_id=merchant_id, statuses=[refunds_pb2.REFUND_STATUS_FAILED], limit=NOTICES_MOST
    )


def _newest(merchant_id: str) -> withdrawals_pb2.ListAllWithdrawalsRequest:
    request = withdrawals_pb2.ListAllWithdrawalsRequest(merchant_id=merchant_id, limit=OPEN_MOST)
    request.created_from.FromDatetime(_CLOCK.now() - GIVEN_UP)
    return request


def _by_operator(
    listed: withdrawals_pb2.ListAllWithdrawalsResponse,
) -> list[tuple[withdrawals_pb2.Withdrawal, str]]:
    """Returns the newest withdrawals that an operator requested, each with the reason."""
    reasons = listed.by_operator
    found = [
        (each, reasons[each.withdraw_uuid]) for each in listed.withdrawals if each.withdraw_uuid in reasons
    ]
    return found[:NOTICES_MOST]


def _given_up(merchant_id: str) -> webhooks_pb2.ListEventsRequest:
    dead = webhooks_pb2.EVENT_STATUS_DEAD
    request = webhooks_pb2.ListEventsRequest(merchant_id=merchant_id, status=dead, limit=AT_MOST)
    request.created_from.FromDatetime(_CLOCK.now() - GIVEN_UP)
    return request


def _failing(merchant_id: str) -> webhooks_pb2.ListEventsRequest:
    pending = webhooks_pb2.EVENT_STATUS_PENDING
    request = webhooks_pb2.ListEventsRequest(
        merchant_id=merchant_id, status=pending, attempted=True, limit=AT_MOST
    )
    request.created_from.FromDatetime(_CLOCK.now() - FAILING)
    return request


def _number(found: Sequence[object], *, most: int = AT_MOST) -> str:
    """Returns their number as people read it; empty for none."""
    number = len(found)
    return "" if not number else f"{number} or more" if number >= most else str(number)


def days_of(rows: Sequence[invoices_pb2.ReportRow]) -> list[Day]:
    """Returns the days that have an event, oldest first, each over all currencies."""
    days: dict[str, Day] = {}
    for row in rows:
        day = days.setdefault(row.key, Day(row.key))
        day.created += row.created
        day.confirmed += row.confirmed
        day.credited_usdt += Decimal(row.credited_usdt)
    return [days[each] for each in sorted(days)]


def charts_of(days: Sequence[Day], first: date, last: date) -> list[charts.Chart]:
    """Returns the credits of each day, and invoices created and paid; a day without an event is zero."""
    known = defaultdict(lambda: Day(""), {each.day: each for each in days})
    dates = [first + timedelta(days=each) for each in range((last - first).days + 1)]
    shown = [known[f"{each}"] for each in dates]
    labels = [f"{each.day} {each:%b}" for each in dates]
    series = [("created", [each.created for each in shown]), ("paid", [each.confirmed for each in shown])]
    return [
        charts.bars("Due to you, USDT", labels, [each.credited_usdt for each in shown], unit="USDT"),
        charts.lines("Invoices", labels, series, counts=True),
    ]
