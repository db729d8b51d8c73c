"""The address of the search, and its entry of the navigation."""

from typing import Final

from console.finding.own import OwnFindPage
from console.finding.pages import FindPage
from console.page import App
from console.ui.pages import SEARCH, Link, members_read, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link(SEARCH, "Search", "anything, by what you have in front of you", reads(*READERS), group=""),
    Link(
        SEARCH,
        "Search",
        "anything of yours, by what you have in front of you",
        members_read("developer", "finance", "viewer"),
        group="",
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    page = OwnFindPage if deps.surface.has_merchants else FindPage
    page(deps).add_to(app, SEARCH)
