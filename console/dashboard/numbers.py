"""The numbers of the start page: balance, today, thirty days, webhooks and new addresses that need attention.

All of them are sums that the services keep: nothing is counted for a page.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final

from console.calls import or_none
from console.exchange import Request
from console.page import Page
from console.ui import charts
from console.words.keys import idle_words
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.merchants.v1 import merchants_pb2
from fiatgate.webhooks.v1 import webhooks_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2
from kit.base.clock import SystemClock
from kit.base.money import share_text, usdt_text
from kit.rpc.errors import Refused

DAYS: Final = 30
AT_MOST: Final = 20
"""More webhooks than these are not counted: `20 or more`."""
FAILING: Final = timedelta(hours=1)
GIVEN_UP: Final = timedelta(days=7)
"""The ages up to which failed webhooks stand on the page: older ones are in the list."""
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


async def numbers_of(page: Page, req: Request) -> Mapping[str, Any]:
    """Returns the values of the page. A service that is away leaves out its own, and is named in `away`."""
    merchant_id = req.exchange.signed_in.merchant_id
    today = _CLOCK.now().date()
    reads_balance = page.may(req, "finance", "viewer")
    reads_keys = page.may(req, "developer")
    balance, book, month, dead, failing, keys = await asyncio.gather(
        _balance(page, merchant_id) if reads_balance else _nothing(),
        _book(page, merchant_id) if reads_balance else _nothing(),
        or_none(page.deps.reports.GetReport(_report(merchant_id, today))),
        or_none(page.deps.webhooks.ListEvents(_given_up(merchant_id))),
        or_none(page.deps.webhooks.ListEvents(_failing(merchant_id))),
        _keys(page, merchant_id) if reads_keys else _nothing(),
    )
    days = days_of(month.rows) if month else []
    asked: dict[str, list[object]] = {"invoices": [month], "webhooks": [dead, failing]}
    if reads_balance:
        asked["withdrawals"] = [balance, book]
    if reads_keys:
        asked["merchants"] = [keys]
    return {
        "balance": balance,
        "new_addresses": [each for each in book.addresses if each.waits] if book else [],
        "month": month,
        "today": _today(month, today) if month else None,
        "days": days[::-1],
        "charts": charts_of(days, today) if days else [],
        "dead": _number(dead),
        "failing": _number(failing),
        "keys": keys,
        "idle_keys": _idle(keys.keys) if keys else [],
        "away": away_of(asked),
    }


def away_of(asked: Mapping[str, Sequence[object]]) -> list[str]:
    """Returns the services of which an answer is missing, by all answers of each."""
    return [service for service, answers in asked.items() if None in answers]


async def _nothing() -> None:
    return None


async def _balance(page: Page, merchant_id: str) -> withdrawals_pb2.GetBalanceResponse | None:
    request = withdrawals_pb2.GetBalanceRequest(merchant_id=merchant_id)
    return await or_none(page.deps.withdrawals.GetBalance(request))


async def _book(page: Page, merchant_id: str) -> withdrawals_pb2.ListAddressesResponse | None:
    request = withdrawals_pb2.ListAddressesRequest(merchant_id=merchant_id)
    return await or_none(page.deps.withdrawals.ListAddresses(request))


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


def _report(merchant_id: str, today: date) -> invoices_pb2.GetReportRequest:
    return invoices_pb2.GetReportRequest(
        first_day=f"{today - timedelta(days=DAYS - 1)}",
        last_day=f"{today}",
        by=invoices_pb2.REPORT_BY_DAY,
        merchant_id=merchant_id,
    )


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


def _number(found: webhooks_pb2.ListEventsResponse | None) -> str:
    """Returns the number of events as people read it; empty for none."""
    number = len(found.events) if found else 0
    return "" if not number else f"{number} or more" if number >= AT_MOST else str(number)


def days_of(rows: Sequence[invoices_pb2.ReportRow]) -> list[Day]:
    """Returns the days that have an event, oldest first, each over all currencies."""
    days: dict[str, Day] = {}
    for row in rows:
        day = days.setdefault(row.key, Day(row.key))
        day.created += row.created
        day.confirmed += row.confirmed
        day.credited_usdt += Decimal(row.credited_usdt)
    return [days[each] for each in sorted(days)]


def _today(month: invoices_pb2.GetReportResponse, today: date) -> Mapping[str, Any]:
    day = next((each for each in days_of(month.rows) if each.day == f"{today}"), Day(f"{today}"))
    return {
        "created": day.created,
        "confirmed": day.confirmed,
        "credited_usdt": day.credited,
        "conversion": day.success,
    }


def charts_of(days: Sequence[Day], today: date) -> list[charts.Chart]:
    """Returns the credits of each day, and invoices created and paid; a day without an event is zero."""
    known = defaultdict(lambda: Day(""), {each.day: each for each in days})
    dates = [today - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]
    shown = [known[f"{each}"] for each in dates]
    labels = [f"{each.day} {each:%b}" for each in dates]
    series = [("created", [each.created for each in shown]), ("paid", [each.confirmed for each in shown])]
    return [
        charts.bars("Due to you, USDT", labels, [each.credited_usdt for each in shown], unit="USDT"),
        charts.lines("Invoices", labels, series, counts=True),
    ]
