"""The addresses that only the dashboard has, and their entries of the navigation."""

from typing import Final

from console.config import DashboardSettings
from console.dashboard.home import HomePage, MerchantPage
from console.dashboard.testing import SendTestPage
from console.page import App
from console.ui.pages import Link
from console.wiring import Deps

LINKS: Final[tuple[Link, ...]] = ()


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    assert isinstance(deps.settings, DashboardSettings)
    app.add_route("/", HomePage(deps, public_url=deps.settings.public_url))
    app.add_route("/merchant", MerchantPage(deps))
    app.add_route("/webhooks/test", SendTestPage(deps, public_url=deps.settings.public_url))
