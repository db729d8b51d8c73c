"""The statement of one month as a document: to be printed, or kept as a PDF."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import falcon.asgi

from console.exchange import Request
from console.page import Page
from console.statements.pages import MONTH, balances_of
from console.statements.things import things_of
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.ids import parse_id
from kit.rpc.errors import database_unavailable, not_found

_CLOCK: Final = SystemClock()
ROWS_PER_CALL: Final = 1000
TRANSFERS_MOST: Final = 5000
"""The most transfers that a document lists, some 120 pages. The CSV has all of them."""
TRIES: Final = 3


class PrintedStatementPage(Page):
    """/merchants/{merchant_id}/statement/print at the desk: a month's opening, sums, transfers and closing, on paper.

    The document adds up, also while the month goes on: it ends at the time at which it was made.
    """

    link = "/withdrawals"
    address = "/merchants/{merchant_id}/statement"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, merchant_id: str = "") -> None:
        merchant_id = merchant_id or req.exchange.signed_in.merchant_id
        if parse_id(merchant_id) is None:
            raise not_found("MERCHANT_NOT_FOUND", "No merchant has this id")
        month = (req.get_param("month") or MONTH.default).strip()
        start, end = MONTH.span(month)
        made_at = _CLOCK.now()
        until = min(end, made_at)
        names, (sums, transfers) = await asyncio.gather(
            self.names(merchant_id), self._statement(merchant_id, start, until)
        )
        things = await things_of(self, merchant_id, transfers)
        self.show(
            req,
            resp,
            "statements-print",
            merchant_id=merchant_id,
            name=names.get(merchant_id, ""),
            month=month,
            title=f"{start:%B %Y}",
            first_day=start,
            last_day=end - timedelta(days=1),
            is_over=end <= made_at,
            made_at=made_at,
            made_by=req.exchange.signed_in.person,
            sums=sums,
            transfers_number=sum(each.count for each in sums.sums),
            transfers=transfers,
            things=things,
            balances=balances_of(sums),
            back=f"{self.address.format(merchant_id=merchant_id)}?month={month}",
        )

    on_head = on_get

    async def _statement(
        self, merchant_id: str, start: datetime, until: datetime
    ) -> tuple[pb.GetStatementResponse, Sequence[pb.Transfer]]:
        """Returns the sums, and the transfers unless they are more than TRANSFERS_MOST. Raises DB_UNAVAILABLE when they
        don't fit each other: a transfer of the last moments was committed between the calls, each time.
        """
        request = pb.GetStatementRequest(merchant_id=merchant_id)
        request.created_from.FromDatetime(start.astimezone(UTC))
        request.created_before.FromDatetime(until.astimezone(UTC))
        for _ in range(TRIES):
            sums = await self.deps.withdrawals.GetStatement(request)
            number = sum(each.count for each in sums.sums)
            if number > TRANSFERS_MOST:
                return sums, []
            transfers = await self._transfers(merchant_id, request)
            last = transfers[-1].after if transfers else sums.opening
            if len(transfers) == number and last == sums.closing:
                return sums, transfers
        raise database_unavailable()

    async def _transfers(self, merchant_id: str, span: pb.GetStatementRequest) -> Sequence[pb.Transfer]:
        found: list[pb.Transfer] = []
        request = pb.ListTransfersRequest(
            merchant_id=merchant_id,
            created_from=span.created_from,
            created_before=span.created_before,
            limit=ROWS_PER_CALL,
            with_balances=True,
        )
        while len(found) <= TRANSFERS_MOST:
            page = (await self.deps.withdrawals.ListTransfers(request)).transfers
            found += page
            if len(page) < ROWS_PER_CALL:
                break
            request.after_transfer_id = page[-1].transfer_id
            request.after_balance.CopyFrom(page[-1].after)
        return found


class PrintedBalancePage(PrintedStatementPage):
    """/balance/print at the dashboard: the statement of the session's merchant."""

    link = "/balance"
    address = "/balance"
