"""The addresses of the list of acts, and its entry of the navigation on each surface."""

from typing import Final

from console.audit.pages import AuditPage
from console.page import App
from console.ui.pages import Link, reads
from console.wiring import Deps

LINKS: Final = (
    Link("/audit", "Audit", "who did what, when, in all services", reads(), group="house"),
    Link(
        "/audit",
        "Audit",
        "who did what for this merchant",
        frozenset({"owner"}),
        group="house",
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    AuditPage(deps).add_to(app, "/audit")
