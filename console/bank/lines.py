"""Lines of banks at the desk: the list by state, and one line with its steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Final

import falcon.asgi

from console.bank import following, paying
from console.bank.spent import spent_of
from console.calls import or_none
from console.config import DeskSettings
from console.exchange import Request
from console.list_page import Asked, Found, ListPage
from console.page import Page, leave_for, own_path
from console.ui.filters import Tabs, Text
from console.ui.values import iso, word
from console.wiring import Deps
from fiatgate.bank.v1 import bank_pb2 as pb
from fiatgate.invoices.v1 import invoices_pb2
from kit.base.proto import most_of
from kit.rpc.errors import Refused, precondition

STATES: Final = {
    "proposed": pb.LINE_STATE_PROPOSED,
    "unmatched": pb.LINE_STATE_UNMATCHED,
    "matched": pb.LINE_STATE_MATCHED,
    "ignored": pb.LINE_STATE_IGNORED,
    "outgoing": pb.LINE_STATE_OUTGOING,
    "reversed": pb.LINE_STATE_REVERSED,
    "all": pb.LINE_STATE_UNSPECIFIED,
}
REASON_MOST: Final = most_of(pb.IgnoreLineRequest, "reason")
NOTE_MOST: Final = most_of(invoices_pb2.OpenLateCaseRequest, "note")
MENDABLE: Final = frozenset({"VALIDATION_ERROR"}) | paying.REFUSALS


def has_demo_bank(deps: Deps) -> bool:
    """Returns whether the desk is one for trials: invented lines must not confirm real deals."""
    settings = deps.settings
    return isinstance(settings, DeskSettings) and settings.demo_bank and settings.url.startswith("http:")


class LinesPage(ListPage):
    """/bank and /bank.csv: lines by state, newest first."""

    link = "/bank"
    template = "bank-lines"
    csv_name = "bank-lines"
    columns = (
        *("line_id", "account", "booked_on", "amount", "currency_code", "left", "state", "tier", "deal_id"),
        *(
            "invoice_id",
            "deal_amount",
            "counterparty_name",
            "counterparty_account",
            "text",
            "reason",
            "created_at",
        ),
    )
    filters = (
        Tabs(
            "state",
            "Parts",
            {
                "proposed": "Proposed",
                "unmatched": "Without a deal",
                "matched": "Matched",
                "ignored": "Ignored",
                "outgoing": "Went out",
                "reversed": "Taken back",
                "all": "All",
            },
            counts={
                "proposed": "bank_lines_proposed",
                "unmatched": "bank_lines_unmatched",
                "reversed": "bank_lines_reversed",
            },
        ),
        Text("account", "Account"),
    )

    async def rows(self, req: Request, asked: Asked) -> Found:
        request = pb.ListLinesRequest(
            state=STATES[asked["state"]],
            account=asked["account"],
            after_line_id=asked.after,
            limit=asked.limit,
        )
        found = (await self.deps.bank.ListLines(request)).lines
        return asked.found(
            found,
            after=lambda row: row.line_id,
            confirmable=paying.CONFIRMABLE,
            lines_of=Counter(row.deal_id for row in found if row.payable),
        )

    async def more(self, req: Request, found: Found) -> Mapping[str, Any]:
        return {"has_demo_bank": has_demo_bank(self.deps)}

    def cells(self, row: pb.Line, found: Found) -> Sequence[str]:
        return (
            *(row.line_id, row.account, row.booked_on, row.amount, row.currency_code, row.left),
            *(word(row, "state"), word(row, "tier"), row.deal_id, row.invoice_id, row.deal_amount),
            *(row.counterparty_name, row.counterparty_account, row.text, row.reason, iso(row.created_at)),
        )


class LinePage(Page):
    """/bank/{line_id}, and its steps, which lead back to the list."""

    link = "/bank"

    async def on_get(self, req: Request, resp: falcon.asgi.Response, line_id: str) -> None:
        await self._show(req, resp, line_id)

    on_head = on_get

    async def on_post_confirm(self, req: Request, resp: falcon.asgi.Response, line_id: str) -> None:
        back = own_path((await self.form(req)).text("back") or "/bank")
        await self._step(req, resp, line_id, paying.confirm(self, line_id), back=back)

    async def on_post_ignore(self, req: Request, resp: falcon.asgi.Response, line_id: str) -> None:
        form = await self.form(req)
        request = pb.IgnoreLineRequest(line_id=line_id, reason=form.line("reason", most=REASON_MOST))
        await self._step(req, resp, line_id, self.deps.bank.IgnoreLine(request), notice="bank-line-ignored")

    async def on_post_case(self, req: Request, resp: falcon.asgi.Response, line_id: str) -> None:
        note = (await self.form(req)).prose("note", most=NOTE_MOST)
        call = self._open_case(line_id, note)
        await self._step(req, resp, line_id, call, notice="case-opened", back=f"/bank/{line_id}")

    async def _open_case(self, line_id: str, note: str) -> None:
        line = (await self.deps.bank.GetLine(pb.GetLineRequest(line_id=line_id))).line
        request = invoices_pb2.OpenLateCaseRequest(invoice_id=line.invoice_id, line_id=line_id, note=note)
        await self.deps.deals.OpenLateCase(request)

    async def on_post_refund(self, req: Request, resp: falcon.asgi.Response, line_id: str) -> None:
        refund = (await self.form(req)).text("refund")
        call = self.deps.bank.LinkRefund(pb.LinkRefundRequest(line_id=line_id, refund_id=refund))
        await self._step(req, resp, line_id, call, notice="bank-line-refund", back=f"/bank/{line_id}")

    async def on_post_restore(self, req: Request, resp: falcon.asgi.Response, line_id: str) -> None:
        await self.form(req)
        await self._step(req, resp, line_id, self._restore(line_id), notice="bank-line-restored")

    async def _restore(self, line_id: str) -> None:
        line = (await self.deps.bank.GetLine(pb.GetLineRequest(line_id=line_id))).line
        if line.used_for and await following.use_of(self, line):
            raise precondition(
                "BANK_LINE_CONFLICT", "Its money is credited or returned, or waits for approval"
            )
        await self.deps.bank.RestoreLine(pb.RestoreLineRequest(line_id=line_id, used_for=line.used_for))

    async def _step(
        self,
        req: Request,
        resp: falcon.asgi.Response,
        line_id: str,
        call: Awaitable[object],
        *,
        notice: str = "",
        back: str = "/bank",
    ) -> None:
        try:
            done = await call
        except Refused as refused:
            if refused.reason not in MENDABLE:
                raise
            await self._show(req, resp, line_id, refused=refused)
        else:
            leave_for(resp, back, notice=notice or str(done))

    async def _show(
        self, req: Request, resp: falcon.asgi.Response, line_id: str, *, refused: Refused | None = None
    ) -> None:
        line = (await self.deps.bank.GetLine(pb.GetLineRequest(line_id=line_id))).line
        self.show(
            req,
            resp,
            "bank-line",
            refused=refused,
            line=line,
            confirmable=paying.CONFIRMABLE,
            steps=await following.steps_of(self, line),
            unlinked=await following.unlinked_of(self, line),
            refunds=await following.refunds_of(self, line),
            spent=await spent_of(self, line),
            made=await or_none(following.use_of(self, line)) if line.used_for else None,
        )
