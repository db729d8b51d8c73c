"""A page as axe-core and the eye see it: light, dark, on a small phone, with large text."""

from collections.abc import Mapping
from typing import Any, Final

from playwright.sync_api import Page, ViewportSize, expect

from tests.support import axe, screenshots

PHONE: Final = ViewportSize(width=320, height=640)
PAPER: Final = ViewportSize(width=718, height=1046)
"""A4 without its margins, in CSS pixels."""
LABELS: Final = """[...document.querySelectorAll(".list td[data-label]")].flatMap((cell) => {
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
AXES: Final = """[...document.querySelectorAll(".chart text")].map((each) => each.getBoundingClientRect())
  .filter((each) => each.width && (each.height < 10 || each.left < 0 || each.right > innerWidth)).length"""
"""Texts of charts that are too small to be read, or cut off."""
FITS: Final = "document.documentElement.scrollWidth <= window.innerWidth"
ON_A_PHONE: Final = f"""() => {{
  const seen = {{fits: {FITS}, labels: {LABELS}, axes: {AXES}}};
  document.documentElement.style.fontSize = "200%";
  seen.fits_large = {FITS};
  document.documentElement.style.fontSize = "";
  return seen;
}}"""
ON_PAPER: Final = f"() => ({{fits: {FITS}, ink: getComputedStyle(document.body).color}})"


def looks_right(page: Page, name: str) -> None:
    """The page that the browser shows is clean for axe in light and dark; nothing is cut off at its size, at 320
    pixels, with text twice as large, and on paper. It is left as it was.
    """
    size = page.viewport_size
    assert size is not None
    expect(page.get_by_role("heading", level=1)).not_to_have_text("Something went wrong")
    assert page.evaluate(f"document.fonts.ready.then(() => {FITS})"), f"{name} is cut off"
    _is_clean(page, f"{name}-light", axe.RULES)
    page.emulate_media(color_scheme="dark")
    _is_clean(page, f"{name}-dark", axe.CONTRAST)
    page.set_viewport_size(PHONE)
    screenshots.take(page, f"console-{name}-phone")
    seen = page.evaluate(ON_A_PHONE)
    assert seen == {"fits": True, "labels": [], "axes": 0, "fits_large": True}, f"{name} on a phone: {seen}"
    page.set_viewport_size(PAPER)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(ON_PAPER) == {"fits": True, "ink": "rgb(0, 0, 0)"}, f"{name} on paper"
    page.emulate_media(media="screen", color_scheme="light")
    page.set_viewport_size(size)


def _is_clean(page: Page, name: str, rules: Mapping[str, Any]) -> None:
    screenshots.take(page, f"console-{name}")
    found = axe.violations(page, rules)
    assert not found, f"{name}: " + "; ".join(
        f"{each['id']} {each['nodes'][0]['html'][:200]}" for each in found
    )
