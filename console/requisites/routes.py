"""The addresses of requisites, and their entry of the navigation."""

from typing import Final

from console.page import App
from console.requisites.adding import NewRequisitePage, SeveralPage
from console.requisites.pages import DaysFile, RequisitePage, RequisitesPage
from console.ui.pages import Link, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link(
        "/requisites",
        "Requisites",
        "the accounts that customers pay to, their load and history",
        reads(*READERS),
        group="setup",
        count="methods_full",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    several, listed, one = SeveralPage(deps), RequisitesPage(deps), RequisitePage(deps)
    listed.add_to(app, "/requisites")
    app.add_route("/requisites/enable", listed, suffix="enable")
    app.add_route("/requisites/disable", listed, suffix="disable")
    app.add_route("/new-requisite", NewRequisitePage(deps))
    app.add_route("/new-requisites", several)
    app.add_route("/new-requisites/add", several, suffix="add")
    app.add_route("/requisites/{requisite_id}/days.csv", DaysFile(deps), suffix="csv")
    one.add_to(app, "/requisites/{requisite_id}")
