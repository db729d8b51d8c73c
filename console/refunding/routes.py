"""The addresses of the pages, and their entry of the dashboard's navigation."""

from typing import Final

from console.config import DashboardSettings
from console.page import App
from console.refunding.list import RefundsPage
from console.refunding.one import RefundPage
from console.refunding.requesting import NewRefundPage
from console.ui.pages import Link, members_read
from console.wiring import Deps

LINKS: Final = (
    Link(
        "/refunds",
        "Refunds",
        "money that goes back to your customers",
        members_read("finance", "viewer"),
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    assert isinstance(deps.settings, DashboardSettings)
    RefundsPage(deps).add_to(app, "/refunds")
    app.add_route("/refunds/new", NewRefundPage(deps))
    refund = RefundPage(deps, public_url=deps.settings.public_url)
    app.add_route("/refunds/{refund_id}", refund)
    app.add_route("/refunds/{refund_id}/cancel", refund, suffix="cancel")
    app.add_route("/refunds/{refund_id}/account", refund, suffix="account")
