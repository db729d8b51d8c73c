"""The addresses of statements and changes of balances on each surface, and their entry in the navigation."""

from typing import Final

from console.page import App
from console.statements.changes import BalancesPage, OwnBalancesPage
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
        OwnBalancesPage(deps).add_to(app, "/balance/changes")
        app.add_route("/balance/print", PrintedBalancePage(deps))
    else:
        BalancesPage(deps).add_to(app, "/reports/balances")
        StatementPage(deps).add_to(app, "/merchants/{merchant_id}/statement")
        app.add_route("/merchants/{merchant_id}/statement/print", PrintedStatementPage(deps))
