"""The addresses of late money, and its entry of the navigation."""

from typing import Final

from console.cases.pages import CasePage, CasesPage
from console.page import App
from console.ui.pages import Link, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link(
        "/cases",
        "Late money",
        "customers report money that came after the end",
        reads(*READERS),
        group="work",
        count="cases",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses of late money."""
    CasesPage(deps).add_to(app, "/cases")
    one = CasePage(deps)
    app.add_route("/cases/{number}", one)
    app.add_route("/cases/{number}/answer", one, suffix="answer")
