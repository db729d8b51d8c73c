"""The addresses of payment links by hand, and their entry of the dashboard's navigation."""

from typing import Final

from console.config import DashboardSettings
from console.links.pages import LinkPage, LinksPage, NewLinkPage
from console.page import App
from console.ui.pages import Link, members_read
from console.wiring import Deps

LINKS: Final = (
    Link(
        "/links",
        "Payment links",
        "ask one customer for money, without a shop",
        members_read("developer", "finance"),
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    assert isinstance(deps.settings, DashboardSettings)
    link = LinkPage(deps, public_url=deps.settings.public_url)
    LinksPage(deps, public_url=deps.settings.public_url).add_to(app, "/links")
    app.add_route("/links/new", NewLinkPage(deps))
    app.add_route("/links/{invoice_id}", link)
    app.add_route("/links/{invoice_id}/qr.svg", link, suffix="qr")
    app.add_route("/links/{invoice_id}/cancel", link, suffix="cancel")
