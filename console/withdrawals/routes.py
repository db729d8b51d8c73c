"""The addresses of withdrawals and their methods, and their entries of the navigation."""

from collections.abc import Mapping
from typing import Any, Final

from console.page import App, Page
from console.ui.pages import Link, members_read, reads
from console.wiring import Deps
from console.withdrawals.desk.lists import DeskWithdrawalsPage, SeveralPage
from console.withdrawals.desk.methods import MethodPage, MethodsPage
from console.withdrawals.desk.new import NewWithdrawalPage
from console.withdrawals.desk.one import DeskWithdrawalPage
from console.withdrawals.desk.payouts import payout_of
from console.withdrawals.list import WithdrawalsPage
from console.withdrawals.one import WithdrawalPage
from fiatgate.approvals.v1 import approvals_pb2
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link(
        "/withdrawals",
        "Withdrawals",
        "payouts to merchants, from request to transaction",
        reads(*READERS),
        count="withdrawals_pending",
    ),
    Link(
        "/withdrawal-methods",
        "Withdrawal methods",
        "networks, fees and least amounts of payouts",
        reads(*READERS),
        group="setup",
    ),
    Link(
        "/withdrawals",
        "Withdrawals",
        "USDT from your balance to your address",
        members_read("finance", "viewer"),
        surface="dashboard",
    ),
)


async def evidence(page: Page, approval: approvals_pb2.Approval) -> Mapping[str, Any]:
    """Returns the values for the page of a request about a withdrawal."""
    payout = await payout_of(page, approval.object.removeprefix("withdrawal:"))
    return {"template": "withdrawal-payout", "payout": payout}


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    if deps.surface.has_merchants:
        WithdrawalsPage(deps).add_to(app, "/withdrawals")
        _add_one(app, WithdrawalPage(deps), "cancel")
        return
    method = MethodPage(deps)
    DeskWithdrawalsPage(deps).add_to(app, "/withdrawals")
    app.add_route("/withdrawals/new", NewWithdrawalPage(deps))
    app.add_route("/withdrawals/several", SeveralPage(deps))
    _add_one(app, DeskWithdrawalPage(deps), "process", "complete", "fail", "cancel")
    MethodsPage(deps).add_to(app, "/withdrawal-methods")
    app.add_route("/withdrawal-methods/new", method, suffix="new")
    app.add_route("/withdrawal-methods/{code}", method)


def _add_one(app: App, page: WithdrawalPage, *steps: str) -> None:
    app.add_route("/withdrawals/{withdraw_uuid}", page)
    for step in steps:
        app.add_route(f"/withdrawals/{{withdraw_uuid}}/{step}", page, suffix=step)
