"""The statement of one merchant: every transfer of the ledger in a month, with the balance after each."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from console.exchange import Request
from console.list_page import ROWS_PER_CALL, Asked, Found, ListPage
from console.statements.things import things_of
from console.ui.filters import Filter
from console.ui.values import iso, word
from console.words.ledger import BALANCES, changes_of
from fiatgate.invoices.v1 import invoices_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.ids import parse_id
from kit.base.money import usdt_text
from kit.rpc.errors import Refused, invalid, not_found

_CLOCK: Final = SystemClock()
REPORT_SECONDS: Final = 2.0
LONGEST_MONTH: Final = timedelta(days=31)
FIRST_YEAR: Final = 2000
"""The oldest month that can be asked for is its January, so each has a month before it."""


@dataclass(frozen=True)
class Month(Filter):
    """A month in UTC that has begun, as 2026-11; by default the present one."""

    kind = "text"

    @property
    def default(self) -> str:
        return f"{_CLOCK.now():%Y-%m}"

    def checked(self, text: str) -> str:
        self.span(text)
        return text

    def span(self, text: str) -> tuple[datetime, datetime]:
        """Returns the first moment of the month, and that of the next one."""
        try:
            start = datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC)
        except ValueError:
            raise self.refusal("a month is written as 2026-11") from None
        if start.year < FIRST_YEAR:
            raise self.refusal(f"a month is one of the year {FIRST_YEAR} or later")
        if start > _CLOCK.now():
            raise self.refusal(f"the month {text} has not begun")
        return start, (start + LONGEST_MONTH).replace(day=1)

    def shown(self, text: str, words: Mapping[str, str]) -> str:
        return text


MONTH: Final = Month("month", "Month", hint="2026-11")


class StatementPage(ListPage):
    """/merchants/{merchant_id}/statement and its CSV at the desk: oldest first, as a bank writes it."""

    link = "/withdrawals"
    template = "statements"
    csv_name = "statement"
    columns = (
        "transfer_id",
        "created_at",
        "kind",
        "invoice_id",
        "withdraw_uuid",
        "amount",
        "available_change",
        "reserved_change",
        "available_after",
        "reserved_after",
        "external_id",
        "order_amount",
        "order_paid",
        "amount_asked",
        "amount_received",
        "currency_code",
        "owed_change",
        "owed_after",
        "correction_id",
        "refund_id",
        "reason",
    )
    filters = (MONTH,)
    per_page = 100

    def file_name(self, req: Request) -> str:
        return f"{self.csv_name}-{(req.get_param('month') or MONTH.default).strip()}"

    async def rows(self, req: Request, asked: Asked) -> Found:
        merchant_id = asked.params.get("merchant_id") or req.exchange.signed_in.merchant_id
        if parse_id(merchant_id) is None:
            raise not_found("MERCHANT_NOT_FOUND", "No merchant has this id")
        start, end = MONTH.span(asked["month"])
        is_file = asked.limit == ROWS_PER_CALL
        request = pb.ListTransfersRequest(merchant_id=merchant_id, limit=asked.limit, with_balances=True)
        request.created_from.FromDatetime(start)
        request.created_before.FromDatetime(end)
        if is_file and asked.after:
            request.after_transfer_id, *held = asked.after.split()
            request.after_balance.CopyFrom(pb.MerchantBalance(**dict(zip(BALANCES, held, strict=True))))
        elif asked.after:
            if parse_id(asked.after) is None:
                raise invalid("VALIDATION_ERROR", "this page does not exist", field="after")
            request.after_transfer_id = asked.after
        found = (await self.deps.withdrawals.ListTransfers(request)).transfers
        things = await things_of(self, merchant_id, found)
        return asked.found(
            found,
            after=_place_with_balance if is_file else _place,
            away=("invoices",) if things.away else (),
            merchant_id=merchant_id,
            things=things,
            month=asked["month"],
        )

    def cells(self, row: pb.Transfer, found: Found) -> Sequence[str]:
        things = found.values["things"]
        order = things.orders.get(things.invoice_id_of(row), invoices_pb2.Invoice())
        available, reserved, owed = changes_of(row)
        return (
            row.transfer_id,
            iso(row.created_at),
            word(row, "kind"),
            things.invoice_id_of(row),
            row.withdraw_uuid,
            row.amount,
            available,
            reserved,
            row.after.available,
            row.after.reserved,
            order.external_id,
            order.amount,
            *things.paid_of(row),
            order.currency_code,
            owed,
            row.after.owed,
            row.correction_id,
            row.refund_id,
            things.reason_of(row),
        )

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        """Returns the sums of the month, and the merchant's name."""
        if "month" not in found.values:  # the month was refused
            return {"sums": None}
        merchant_id = found.values["merchant_id"]
        start, end = MONTH.span(found.values["month"])
        request = pb.GetStatementRequest(merchant_id=merchant_id)
        request.created_from.FromDatetime(start)
        request.created_before.FromDatetime(end)
        sums, names, report = await asyncio.gather(
            self.deps.withdrawals.GetStatement(request),
            self.names(merchant_id),
            self.report(merchant_id, start, end),
        )
        is_over = end <= _CLOCK.now()
        return {
            "sums": sums,
            "balances": balances_of(sums),
            "name": names.get(merchant_id, merchant_id),
            "title": f"{start:%B %Y}",
            "before": f"{start - timedelta(days=1):%Y-%m}",
            "after": f"{end:%Y-%m}" if is_over else "",
            "is_over": is_over,
            "crossing": sums.crossing,
            "first_day": f"{start:%Y-%m-%d}",
            "last_day": f"{end - timedelta(days=1):%Y-%m-%d}",
            "credited": _credited(sums),
            "paid": _paid(sums),
            "report": report,
        }

    async def report(self, merchant_id: str, start: datetime, end: datetime) -> str:
        """Returns what the report of these days says was credited; empty while invoices is away, or still sums."""
        request = invoices_pb2.GetReportRequest(
            first_day=f"{start:%Y-%m-%d}",
            last_day=f"{end - timedelta(days=1):%Y-%m-%d}",
            by=invoices_pb2.REPORT_BY_CURRENCY,
            merchant_id=merchant_id,
        )
        try:
            report = await self.deps.reports.GetReport(request, timeout=REPORT_SECONDS)
        except Refused as refused:
            if refused.reason not in ("DB_UNAVAILABLE", "INTERNAL_ERROR", "ACTOR_INVALID", "RATE_LIMITED"):
                raise
            return ""
        return report.all.credited_usdt if report.complete else ""


class BalancePage(StatementPage):
    """/balance and its CSV at the dashboard: the statement of the session's merchant."""

    link = "/balance"

    async def report(self, merchant_id: str, start: datetime, end: datetime) -> str:
        """Returns nothing: the comparison with the report is for operators, who mend a difference."""
        return ""


def balances_of(sums: pb.GetStatementResponse) -> Sequence[str]:
    """Returns the balances that a statement shows: the owed one when there was a debt in its span."""
    changed = {each.kind for each in sums.sums} & {pb.TRANSFER_KIND_OWED, pb.TRANSFER_KIND_DEBT_PAID}
    return BALANCES if changed or Decimal(sums.opening.owed or 0) else BALANCES[:2]


def _credited(sums: pb.GetStatementResponse) -> str:
    """Returns the sum of the credits by the time of the credit: USDT."""
    credits = (Decimal(each.amount) for each in sums.sums if each.kind == pb.TRANSFER_KIND_CREDIT)
    return usdt_text(sum(credits, Decimal(0)))


def _paid(sums: pb.GetStatementResponse) -> str:
    """Returns the sum of the credits by the time of the payment, as reports count them: USDT."""
    return usdt_text(Decimal(_credited(sums)) - Decimal(sums.crossing.credited) + Decimal(sums.crossing.paid))


def _place(row: pb.Transfer) -> str:
    return row.transfer_id


def _place_with_balance(row: pb.Transfer) -> str:
    """Returns the place of the next call for a file: with the balance there, which the service need not compute."""
    return " ".join([row.transfer_id, *(getattr(row.after, each) for each in BALANCES)])
