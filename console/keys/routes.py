"""The addresses of API keys, and their entry of the dashboard's navigation."""

from typing import Final

from console.keys.pages import DeskKeysPage, KeysPage
from console.page import App
from console.ui.pages import Link, members_read
from console.wiring import Deps

LINKS: Final = (
    Link(
        "/keys",
        "API keys",
        "keys of your programs, and the secrets that sign webhooks",
        members_read("developer"),
        group="setup",
        surface="dashboard",
    ),
)


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    keys = KeysPage(deps) if deps.surface.has_merchants else DeskKeysPage(deps)
    keys.add_to(app, keys.base)
    app.add_route(f"{keys.base}/{{key_id}}/deactivate", keys, suffix="deactivate")
    app.add_route(f"{keys.base}/{{key_id}}/rotate", keys, suffix="rotate")
