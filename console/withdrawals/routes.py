"""The addresses of withdrawals and their methods, and their entries of the navigation."""

from collections.abc import Mapping
from typing import Any, Final

from console.page import App, Page
from console.ui.pages import Link, reads
from console.wiring import Deps
from console.withdrawals.lists import SeveralPage, WithdrawalsPage
from console.withdrawals.methods import MethodPage, MethodsPage
from console.withdrawals.one import NewWithdrawalPage, WithdrawalPage
from console.withdrawals.payouts import payout_of
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
)


async def evidence(page: Page, withdraw_uuid: str) -> Mapping[str, Any]:
    """Returns the values for the page of a request about a withdrawal."""
    return {"template": "withdrawal-payout", "payout": await payout_of(page, withdraw_uuid)}


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    one, method = WithdrawalPage(deps), MethodPage(deps)
    WithdrawalsPage(deps).add_to(app, "/withdrawals")
    app.add_route("/withdrawals/new", NewWithdrawalPage(deps))
    app.add_route("/withdrawals/several", SeveralPage(deps))
    app.add_route("/withdrawals/{withdraw_uuid}", one)
    for step in ("process", "complete", "fail", "cancel"):
        app.add_route(f"/withdrawals/{{withdraw_uuid}}/{step}", one, suffix=step)
    MethodsPage(deps).add_to(app, "/withdrawal-methods")
    app.add_route("/withdrawal-methods/new", method, suffix="new")
    app.add_route("/withdrawal-methods/{code}", method)
