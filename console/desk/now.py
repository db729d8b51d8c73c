"""The start page of the desk: what waits."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

import falcon.asgi

from console.calls import OPTIONAL_SECONDS, or_none
from console.desk import processes
from console.desk.live import merged
from console.desk.queues import rows_of
from console.exchange import Request
from console.page import Page
from console.ui.choices import full_methods
from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.queues.v1 import queues_pb2
from kit.base.clock import SystemClock


@dataclass(frozen=True)
class Day:
    """The payments of a UTC day.

    turnover  what customers paid: amount and currency
    usdt      the same in USDT, at the rates of the deals
    """

    created: int
    confirmed: int
    turnover: Sequence[tuple[str, str]]
    usdt: Decimal
    credited: Decimal


@dataclass(frozen=True)
class Found:
    """The answers of the services.

    queues   the queues of the services that answered
    silent   services that did not give their queues
    full     active payment methods without a free place; empty while catalog or invoices is away
    ill      processes that are not well; also the gateway or the dashboard when it does not answer
    away     services that do not answer
    is_open  whether new deals are accepted; None: not known
    lapsed   enabled currencies without a valid rate; empty while catalog is away
    ending   rates that an operator set by hand and that end soon; empty while catalog is away
    days     today and yesterday; None while invoices is away
    """

    queues: list[queues_pb2.Queue]
    silent: list[str]
    full: Sequence[catalog_pb2.PaymentMethod]
    ill: list[str]
    away: list[str]
    is_open: bool | None
    lapsed: Sequence[str] = ()
    ending: Sequence[catalog_pb2.Rate] = ()
    days: tuple[Day, Day] | None = None


class NowPage(Page):
    """/: the queues, what is unwell, and whether deals are accepted."""

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        found = await self._found() if self.deps.pages.opens(req, "/") else Found([], [], [], [], [], None)
        now = SystemClock().now()
        rows = rows_of(
            found.queues, now=now, may=lambda *roles: self.may(req, *roles), complete=not found.silent
        )
        paths = {row.kind.path for row in rows if self.deps.pages.opens(req, row.kind.path.partition("?")[0])}
        self.show(req, resp, "desk-now", rows=rows, found=found, paths=paths)

    on_head = on_get

    async def _found(self) -> Found:
        """Calls all processes at the same time, each once for its queues and once for its health."""
        queues, services, http, deals, full, (rates, days) = await asyncio.gather(
            asyncio.gather(*(self._queues(name) for name in self.deps.queues)),
            processes.of_services(self.deps, seconds=OPTIONAL_SECONDS),
            processes.of_http(self.deps, seconds=OPTIONAL_SECONDS),
            self._deals(),
            full_methods(
                self.deps.catalog.GetCatalog(catalog_pb2.GetCatalogRequest()),
                self.deps.deals.ListMethodPlaces(invoices_pb2.ListMethodPlacesRequest()),
            ),
            asyncio.gather(
                or_none(self.deps.catalog.ListRates(catalog_pb2.ListRatesRequest())), self._days()
            ),
        )
        silent = [name for name, of_one in zip(self.deps.queues, queues, strict=True) if of_one is None]
        away = {each.name for each in services if not each.version}
        away |= set(silent)
        enabled = [each for each in rates.rates if each.enabled] if rates else []
        return Found(
            merged(of_one for of_one in queues if of_one is not None),
            silent,
            full,
            [each.name for each in (*http, *services) if not each.is_well and each.name not in away],
            sorted(away),
            deals,
            [each.currency_code for each in enabled if not each.in_force.fresh],
            [each.in_force for each in enabled if each.in_force.ends_soon],
            days,
        )

    async def _queues(self, name: str) -> list[queues_pb2.Queue] | None:
        found = await or_none(self.deps.queues[name].ListQueues(queues_pb2.ListQueuesRequest()))
        return None if found is None else list(found.queues)

    async def _deals(self) -> bool | None:
        found = await or_none(self.deps.deals.GetDealsSystem(invoices_pb2.GetDealsSystemRequest()))
        return None if found is None else found.enabled

    async def _days(self) -> tuple[Day, Day] | None:
        today = SystemClock().now().date()
        first, last = (today - timedelta(days=1)).isoformat(), today.isoformat()
        request = invoices_pb2.GetReportRequest(first_day=first, last_day=last, by=invoices_pb2.REPORT_BY_DAY)
        report = await or_none(self.deps.reports.GetReport(request))
        if report is None:
            return None
        now, before = ([row for row in report.rows if row.key == key] for key in (last, first))
        return _day(now), _day(before)


def _day(rows: Sequence[invoices_pb2.ReportRow]) -> Day:
    return Day(
        sum(row.created for row in rows),
        sum(row.confirmed for row in rows),
        [(row.turnover, row.currency_code) for row in rows if row.confirmed],
        sum((Decimal(row.turnover_usdt) for row in rows), Decimal(0)),
        sum((Decimal(row.credited_usdt) for row in rows), Decimal(0)),
    )
