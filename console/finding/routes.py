"""The address of the search, and its entry of the navigation."""

from typing import Final

from console.finding.pages import FindPage
from console.page import App
from console.ui.pages import SEARCH, Link, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link(SEARCH, "Search", "anything, by what you have in front of you", reads(*READERS), group=""),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    FindPage(deps).add_to(app, SEARCH)
