"""The addresses of failed events, and their entry of the navigation."""

from typing import Final

from console.page import App
from console.parked.pages import ParkedPage
from console.ui.pages import Link, reads
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link(
        "/parked",
        "Failed events",
        "events that a service could not process",
        reads(*READERS),
        group="house",
        count="parked",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    parked = ParkedPage(deps)
    parked.add_to(app, "/parked")
    app.add_route("/parked/retry", parked, suffix="retry")
    app.add_route("/parked/{service}/{event_id}/retry", parked, suffix="retry_one")
    app.add_route("/parked/{service}/{event_id}/discard", parked, suffix="discard")
