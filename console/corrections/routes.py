"""The addresses of corrections and debts, and their entries of the navigation."""

from collections.abc import Mapping
from typing import Any, Final

from console.corrections.evidence import purse_of
from console.corrections.lists import CorrectionsPage, DebtsPage
from console.corrections.new import NewCorrectionPage
from console.page import App, Page
from console.ui.pages import Link, reads
from console.wiring import Deps
from fiatgate.approvals.v1 import approvals_pb2
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link(
        "/corrections",
        "Corrections",
        "changes of balances beside payments and withdrawals",
        reads(*READERS),
    ),
    Link("/debts", "Debts", "merchants that owe money", reads(*READERS)),
)


async def evidence(page: Page, approval: approvals_pb2.Approval) -> Mapping[str, Any]:
    """Returns the values for the page of a request for a correction."""
    purse = await purse_of(page, approval)
    return {"template": "correction-evidence", "purse": purse}


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    CorrectionsPage(deps).add_to(app, "/corrections")
    app.add_route("/corrections/new", NewCorrectionPage(deps))
    DebtsPage(deps).add_to(app, "/debts")
