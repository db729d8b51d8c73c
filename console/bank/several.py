"""Several lines in one step: their proposed deals are confirmed, or all of them pay one deal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

import falcon.asgi

from console.bank import paying
from console.calls import each_of
from console.exchange import Request
from console.page import Page, leave_for
from fiatgate.bank.v1 import bank_pb2 as pb
from kit.rpc.errors import Refused, invalid

LINES_MOST: Final = 200
LINKED_MOST: Final = 20
NAME_MOST: Final = 64


class SeveralPage(Page):
    """/bank/several: asks once, with the number and the sum, then confirms each; or links the lines to one deal.

    Besides ticked lines it takes all certain ones, of one account or of all.
    """

    link = "/bank"

    async def on_post(self, req: Request, resp: falcon.asgi.Response) -> None:
        form = await self.form(req)
        ids, deal = list(dict.fromkeys(form.all("line")))[:LINES_MOST], form.line("deal", most=NAME_MOST)
        if form.text("act") == "certain":
            await self._ask(req, resp, await self._certain(form.line("account", most=NAME_MOST)))
        elif not ids:
            leave_for(resp, "/bank", problem="nothing_ticked")
        elif form.text("act") == "link":
            await self._link(req, resp, ids[:LINKED_MOST], deal)
        elif form.text("act") == "confirm":
            if form.text("sure"):
                await self._confirm(req, resp, ids)
            else:
                await self._ask(req, resp, await self._lines(ids))
        else:
            raise invalid("VALIDATION_ERROR", "Expected confirm or link", field="act")

    async def _link(self, req: Request, resp: falcon.asgi.Response, ids: Sequence[str], deal: str) -> None:
        if not deal:
            self.show(req, resp, "bank-link", lines=await self._lines(ids), deal="")
            return
        try:
            notice = await paying.link(self, ids, deal)
        except Refused as refused:
            if refused.reason not in {"VALIDATION_ERROR"} | paying.REFUSALS:
                raise
            lines = await self._lines(ids)
            self.show(req, resp, "bank-link", refused=refused, lines=lines, deal=deal)
        else:
            leave_for(resp, "/bank", notice=notice)

    async def _confirm(self, req: Request, resp: falcon.asgi.Response, ids: Sequence[str]) -> None:
        """Confirms what the question showed. Each line that has changed since, or does not fit, is named."""
        lines = await self._lines(ids)
        fitting = _fitting(lines)
        of = [line.line_id for line in fitting]
        outcomes = await each_of(of, lambda id: paying.confirm(self, id), beside=paying.REFUSALS)
        stayed = {each.id: paying.why(each) for each in outcomes if not each.is_done}
        stayed |= {id: "It does not fit any more: look at it alone." for id in ids if id not in of}
        if not stayed:
            leave_for(resp, "/bank", notice="bank-lines-confirmed")
            return
        self.show(req, resp, "bank-several", lines=lines, stayed=stayed, confirmed=len(ids) - len(stayed))

    async def _ask(self, req: Request, resp: falcon.asgi.Response, lines: Sequence[pb.Line]) -> None:
        fitting = _fitting(lines)
        sums: Counter[str] = Counter()
        for line in fitting:
            sums[line.currency_code] += Decimal(line.left)  # type: ignore[assignment]  # a Counter counts any number
        left_out = len(lines) - len(fitting)
        self.show(req, resp, "bank-several", lines=fitting, sums=sums, left_out=left_out, stayed={})

    async def _certain(self, account: str) -> Sequence[pb.Line]:
        request = pb.ListLinesRequest(
            state=pb.LINE_STATE_PROPOSED, tier=pb.TIER_CERTAIN, account=account, limit=LINES_MOST
        )
        return (await self.deps.bank.ListLines(request)).lines

    async def _lines(self, ids: Sequence[str]) -> list[pb.Line]:
        outcomes = await each_of(
            ids, lambda id: self.deps.bank.GetLine(pb.GetLineRequest(line_id=id)), beside=paying.REFUSALS
        )
        return [each.answer.line for each in outcomes if each.is_done]


def _fitting(lines: Sequence[pb.Line]) -> Sequence[pb.Line]:
    """Returns those that are confirmed together, one for each deal: it is paid once."""
    together = [line for line in lines if line.payable and line.tier in paying.TOGETHER]
    return list({line.deal_id: line for line in together}.values())
