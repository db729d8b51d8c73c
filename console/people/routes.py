"""The addresses of people, and their entry of the navigation on each surface."""

from typing import Final

from console.page import App
from console.people.pages import InvitationsPage, InvitePage, PeoplePage, PersonPage
from console.ui.pages import Link, reads
from console.wiring import Deps

LINKS: Final = (
    Link("/people", "People", "the staff, its roles, invitations, sessions", reads(), group="house"),
    Link(
        "/people",
        "Members",
        "roles at this merchant, invitations",
        frozenset({"owner"}),
        group="house",
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    person = PersonPage(deps)
    PeoplePage(deps).add_to(app, "/people")
    app.add_route("/people/invite", InvitePage(deps))
    app.add_route("/people/invitations/{invitation_id}/withdraw", InvitationsPage(deps), suffix="withdraw")
    app.add_route("/people/{person_id}", person)
    app.add_route("/people/{person_id}/roles", person, suffix="roles")
    app.add_route("/people/{person_id}/recover", person, suffix="recover")
    if deps.surface.has_merchants:
        app.add_route("/people/{person_id}/remove", person, suffix="remove")
        return
    app.add_route("/people/{person_id}/disable", person, suffix="disable")
    app.add_route("/people/{person_id}/enable", person, suffix="enable")
    app.add_route("/people/{person_id}/sessions/{session_id}/end", person, suffix="session")
