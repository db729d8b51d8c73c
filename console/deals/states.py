"""The deals of an open list that no longer belong to it, with the author of the step: for the script of the list."""

from __future__ import annotations

from typing import ClassVar, Final

import falcon.asgi

from console.deals.queue import MARKED, STATES
from console.deals.words import last_step
from console.exchange import Request
from console.page import Page
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.ids import parse_id
from kit.web.replies import reply

IDS_MOST: Final = 200
"""As many rows as a list can have."""


class StatesPage(Page):
    """/deals/states?state=marked&ids=…,…: {"gone": {id: "Payment confirmed by …"}}."""

    link = "/deals"
    is_unattended: ClassVar[bool] = True

    async def on_get(self, req: Request, resp: falcon.asgi.Response) -> None:
        ids = [each for each in (req.get_param("ids") or "").split(",")[:IDS_MOST] if parse_id(each)]
        found = (await self.deps.deals.ListDealStates(pb.ListDealStatesRequest(deal_ids=ids))).states
        listed = req.get_param("state") or MARKED
        reply(resp, {"gone": {each.deal_id: last_step(each) for each in found if not _belongs(each, listed)}})


def _belongs(deal: pb.DealState, listed: str) -> bool:
    """Returns whether the list of a tab still has the deal."""
    status, sub_status = STATES.get(listed, (pb.DEAL_STATUS_UNSPECIFIED, ""))
    return status in (pb.DEAL_STATUS_UNSPECIFIED, deal.status) and sub_status in ("", deal.sub_status)
