"""The addresses of the settings, and their entry of the dashboard's navigation."""

from typing import Final

from console.page import App
from console.settings.logo import OwnLogo
from console.settings.pages import SettingsPage
from console.settings.preview import ColourSheet, PreviewPage
from console.ui.pages import Link, members_read
from console.wiring import Deps
from gateway.pay.files import static_files
from kit.web.files import FilesResource

LINKS: Final = (
    Link(
        "/settings",
        "Settings",
        "addresses of your shop, colour and logo of the payment page",
        members_read("developer", "finance", "viewer"),
        group="setup",
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    settings = SettingsPage(deps)
    app.add_route("/settings", settings)
    app.add_route("/settings/late-money", settings, suffix="late_money")
    OwnLogo(deps).add_logo_to(app, "/settings/logo", "/settings/logos")
    app.add_route("/settings/preview/{colour}/{logo}", PreviewPage(deps))
    app.add_route("/settings/colours/{name}", ColourSheet(deps))
    app.add_route("/settings/pay-static/{version}/{name}", FilesResource(static_files()))
