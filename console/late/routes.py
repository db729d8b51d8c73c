"""The addresses of late money for members, and its entry of the navigation."""

from typing import Final

from console.late.pages import LateCasePage, LateMoneyPage
from console.page import App
from console.ui.pages import Link, members_read
from console.wiring import Deps

LINKS: Final = (
    Link(
        "/cases",
        "Late money",
        "money that customers sent after an invoice had ended",
        members_read("developer", "finance", "viewer"),
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    LateMoneyPage(deps).add_to(app, "/cases")
    one = LateCasePage(deps)
    app.add_route("/cases/{number}", one)
    app.add_route("/cases/{number}/answer", one, suffix="answer")
