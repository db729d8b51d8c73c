"""Pictures of pages, for people to look at: `SCREENSHOTS=1 make test ARGS=tests/console` puts them into
tests/screenshots, which git ignores. Without it none is taken, because each takes a third of a second.
"""

import os
from pathlib import Path
from typing import Final

from playwright.sync_api import Page

FOLDER: Final = Path(__file__).parents[1] / "screenshots"


def take(page: Page, name: str) -> None:
    if os.environ.get("SCREENSHOTS"):
        FOLDER.mkdir(exist_ok=True)
        page.screenshot(path=FOLDER / f"{name}.png", full_page=True)
