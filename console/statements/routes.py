"""The address of a merchant's statement."""

from typing import Final

from console.page import App
from console.statements.pages import StatementPage
from console.ui.pages import Link
from console.wiring import Deps

LINKS: Final[tuple[Link, ...]] = ()


def add_to(app: App, deps: Deps) -> None:
    """Adds the addresses."""
    StatementPage(deps).add_to(app, "/merchants/{merchant_id}/statement")
