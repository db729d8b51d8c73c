"""The addresses that only the desk has, and their entries of the navigation."""

from typing import Final

from console.desk.home import HomePage
from console.page import App
from console.ui.pages import Link
from console.wiring import Deps

LINKS: Final[tuple[Link, ...]] = ()


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    app.add_route("/", HomePage(deps))
