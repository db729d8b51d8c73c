"""The addresses of payment links by hand, and their entry of the dashboard's navigation."""

from typing import Final

from console.config import DashboardSettings
from console.links.many import ManyLinkPage, ManyLinksPage, NewManyLinkPage
from console.links.pages import LinkPage, LinksPage, NewLinkPage
from console.page import App
from console.ui.pages import Link, members_read
from console.wiring import Deps

LINKS: Final = (
    Link(
        "/links",
        "Payment links",
        "ask customers for money, without a shop",
        members_read("developer", "finance"),
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    assert isinstance(deps.settings, DashboardSettings)
    url = deps.settings.public_url
    link, many = LinkPage(deps, public_url=url), ManyLinkPage(deps, public_url=url)
    LinksPage(deps, public_url=url).add_to(app, "/links")
    app.add_route("/links/new", NewLinkPage(deps))
    ManyLinksPage(deps, public_url=url).add_to(app, "/links/many")
    app.add_route("/links/many/new", NewManyLinkPage(deps))
    app.add_route("/links/many/{link_id}", many)
    app.add_route("/links/many/{link_id}/qr.svg", many, suffix="qr")
    app.add_route("/links/many/{link_id}/cancel", many, suffix="cancel")
    app.add_route("/links/{invoice_id}", link)
    app.add_route("/links/{invoice_id}/qr.svg", link, suffix="qr")
    app.add_route("/links/{invoice_id}/cancel", link, suffix="cancel")
