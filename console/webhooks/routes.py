"""The addresses of webhooks and parked events, and their entries of the navigation."""

from typing import Final

from console.page import App
from console.ui.pages import Link, reads
from console.webhooks.events import EventPage, EventsPage
from console.webhooks.parked import ParkedPage
from console.wiring import Deps
from kit.rpc.permissions import READERS

LINKS: Final = (
    Link(
        "/webhooks",
        "Webhooks",
        "what merchants were told, each attempt, resend",
        reads(*READERS),
        group="find",
        count="webhooks_dead",
    ),
    Link(
        "/parked",
        "Parked events",
        "events that a service could not handle",
        reads(*READERS),
        group="house",
        count="parked",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    events, event, parked = EventsPage(deps), EventPage(deps), ParkedPage(deps)
    events.add_to(app, "/webhooks")
    app.add_route("/webhooks/resend", events, suffix="resend")
    app.add_route("/webhooks/{event_id}", event)
    app.add_route("/webhooks/{event_id}/resend", event, suffix="resend")
    parked.add_to(app, "/parked")
    app.add_route("/parked/retry", parked, suffix="retry")
    app.add_route("/parked/{service}/{event_id}/retry", parked, suffix="retry_one")
    app.add_route("/parked/{service}/{event_id}/discard", parked, suffix="discard")
