"""A page as axe-core and the eye see it: light, dark, on a small phone, with large text."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import Page, ViewportSize, expect

from tests.support import axe, screenshots

COLOURS: Final = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
PHONE: Final = ViewportSize(width=320, height=640)
PAPER: Final = ViewportSize(width=718, height=1046)
"""A4 without its margins, in CSS pixels."""
INK: Final = "getComputedStyle(document.body).color"
LABELS: Final = """() => [...document.querySelectorAll(".list td[data-label]")].flatMap((cell) => {
  const box = cell.getBoundingClientRect(), label = getComputedStyle(cell, "::before");
  if (!box.height || label.content === "none") return [];
  const width = parseFloat(label.width), height = parseFloat(label.height), range = document.createRange();
  range.selectNodeContents(cell);
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = label.font;
  const lines = Math.round(height / parseFloat(label.lineHeight));
  const isLower = height > box.height + 1, isWider = pen.measureText(cell.dataset.label).width > width * lines + 1;
  const isUnder = [...range.getClientRects()].some((each) => each.width > 1 && each.left < box.left + width);
  return isLower || isWider || isUnder ? [cell.dataset.label] : [];
})"""
"""Labels of a table's cards that are higher or wider than their place, or have a value over them."""
AXES: Final = """() => [...document.querySelectorAll(".chart text")].map((each) => each.getBoundingClientRect())
  .filter((each) => each.width && (each.height < 10 || each.left < 0 || each.right > innerWidth)).length"""
"""Texts of charts that are too small to be read, or cut off."""
FITS: Final = "document.documentElement.scrollWidth <= window.innerWidth"


def _seen(page: Page, name: str) -> None:
    """Takes a picture if one is wanted; axe finds nothing, and nothing is cut off at the side. In the dark only colours
    differ, on the phone only places.
    """
    screenshots.take(page, f"console-{name}")
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Something went wrong")
    assert page.evaluate(FITS), f"{name} is cut off"
    if name.endswith("-phone"):
        return
    found = axe.violations(page, COLOURS if name.endswith("-dark") else axe.RULES)
    assert not found, f"{name}: " + "; ".join(
        f"{each['id']} {each['nodes'][0]['html'][:200]}" for each in found
    )


def looks_right(page: Page, name: str) -> None:
    """The page that the browser shows is clean in light and dark, at 320 pixels, with text twice as large, and on
    paper. It is left as it was.
    """
    size = page.viewport_size
    assert size is not None
    page.evaluate("document.fonts.ready")
    _seen(page, f"{name}-light")
    page.emulate_media(color_scheme="dark")
    _seen(page, f"{name}-dark")
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(PHONE)
    _seen(page, f"{name}-phone")
    assert page.evaluate(LABELS) == [], f"labels of {name} overlap"
    assert page.evaluate(AXES) == 0, f"the axes of {name} cannot be read"
    page.evaluate("document.documentElement.style.fontSize = '200%'")
    assert page.evaluate(FITS), f"{name} is cut off with large text"
    page.evaluate("document.documentElement.style.fontSize = ''")
    page.set_viewport_size(PAPER)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(FITS), f"{name} is cut off on paper"
    assert page.evaluate(INK) == "rgb(0, 0, 0)", f"{name} is printed as it is on a dark screen"
    page.emulate_media(media="screen", color_scheme="light")
    page.set_viewport_size(size)
