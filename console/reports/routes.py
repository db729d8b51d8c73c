"""The address of reports, and its entry of the navigation."""

from typing import Final

from console.page import App
from console.reports.pages import ReportsPage
from console.ui.pages import Link, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link(
        "/reports",
        "Reports",
        "turnover, conversion, commissions, changes of balances",
        reads(*READERS),
        group="find",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    ReportsPage(deps).add_to(app, "/reports")
