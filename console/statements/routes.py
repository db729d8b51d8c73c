"""The addresses of a merchant's statement on each surface, and its entry of the dashboard's navigation."""

from typing import Final

from console.page import App
from console.statements.pages import BalancePage, StatementPage
from console.statements.printed import PrintedBalancePage, PrintedStatementPage
from console.ui.pages import Link, members_read
from console.wiring import Deps

LINKS: Final = (
    Link(
        "/balance",
        "Balance",
        "every credit and withdrawal, month by month",
        members_read("finance", "viewer"),
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    if deps.surface.has_merchants:
        BalancePage(deps).add_to(app, "/balance")
        app.add_route("/balance/print", PrintedBalancePage(deps))
    else:
        StatementPage(deps).add_to(app, "/merchants/{merchant_id}/statement")
        app.add_route("/merchants/{merchant_id}/statement/print", PrintedStatementPage(deps))
