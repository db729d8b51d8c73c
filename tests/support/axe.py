"""axe-core on a page of the browser."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

RULES: Final[Mapping[str, Any]] = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
}

CONTRAST: Final[Mapping[str, Any]] = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
"""All that a dark theme changes."""


def violations(page: Page, options: Mapping[str, Any] = RULES) -> Sequence[dict[str, Any]]:
    """Returns the faults that axe finds on the page.

    Elements that are right are not reported: they are a hundred times as many, and each report has a selector.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    wanted = {**options, "resultTypes": ["violations"]}
    found: list[dict[str, Any]] = page.evaluate(
        "options => axe.run(options).then(found => found.violations)", wanted
    )
    return found
