"""The addresses of refunds, and their entry of the navigation."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from console.page import App, Page
from console.refunds.pages import RefundPage, RefundsPage, refund_of
from console.refunds.returning import ReturnPage
from console.ui.pages import Link, reads
from console.wiring import Deps
from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link("/refunds", "Refunds", "money that goes back to customers", reads(*READERS), count="refunds_ready"),
)


async def evidence(page: Page, approval: approvals_pb2.Approval) -> Mapping[str, Any]:
    """Returns the values for the page of a request to send a refund."""
    request = withdrawals_pb2.GetBalanceRequest(merchant_id=approval.merchant_id)
    values, balance = await asyncio.gather(
        refund_of(page, approval.object.removeprefix("refund:")), page.deps.withdrawals.GetBalance(request)
    )
    return {"template": "refund-asked", "balance": balance, **values}


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    one = RefundPage(deps)
    RefundsPage(deps).add_to(app, "/refunds")
    app.add_route("/refunds/new", ReturnPage(deps))
    app.add_route("/refunds/{refund_id}", one)
    for step in ("account", "send", "complete", "fail", "cancel"):
        app.add_route(f"/refunds/{{refund_id}}/{step}", one, suffix=step)
