"""The addresses of webhooks, and their entry of the navigation on each surface."""

from typing import Final

from console.page import App
from console.ui.pages import Link, members_read, reads
from console.webhooks.events import EventPage, EventsPage
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
        "/webhooks",
        "Webhooks",
        "what your server was told, each attempt, resend",
        members_read("developer", "finance", "viewer"),
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    events, event = EventsPage(deps), EventPage(deps)
    events.add_to(app, "/webhooks")
    app.add_route("/webhooks/resend", events, suffix="resend")
    app.add_route("/webhooks/{event_id}", event)
    app.add_route("/webhooks/{event_id}/resend", event, suffix="resend")
