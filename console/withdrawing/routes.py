"""The addresses of the pages, and their entry of the dashboard's navigation."""

from typing import Final

from console.page import App
from console.ui.pages import Link, members_read
from console.wiring import Deps
from console.withdrawing.addresses import AddressesPage
from console.withdrawing.requesting import RequestPage

LINKS: Final = (
    Link(
        "/addresses",
        "Payout addresses",
        "where your withdrawals may go",
        members_read("finance", "viewer"),
        group="setup",
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    book = AddressesPage(deps)
    book.add_to(app, "/addresses")
    app.add_route("/addresses/{address_id}/remove", book, suffix="remove")
    app.add_route("/withdrawals/new", RequestPage(deps))
