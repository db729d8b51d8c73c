"""The addresses that only the desk has, and their entries of the navigation."""

from typing import Final

from console.desk.health import FreshHealthPage, HealthPage
from console.desk.live import LivePage
from console.desk.now import NowPage
from console.page import App
from console.ui.pages import LIVE, Link, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link("/", "Now", "what waits, oldest first", reads(*READERS)),
    Link("/health", "Health", "each process, its loops and numbers", reads(*READERS), group="house"),
    Link(LIVE, "Live updates", "the numbers of the queues as they change", reads(*READERS), group=""),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    app.add_route("/", NowPage(deps))
    app.add_route("/health", HealthPage(deps))
    app.add_route("/health/fresh", FreshHealthPage(deps))
    app.add_route(LIVE, LivePage(deps))
