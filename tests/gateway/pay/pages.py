"""Steps and checks that tests of the page share."""

import re
from html import unescape
from typing import Any

from playwright.sync_api import Page, expect

from tests.gateway.desk import Desk, Shop
from tests.support import screenshots

# Letters that stand outside of what holds them: of an amount, those that are missing are money.
CUT_OFF = """() => {
    const [found, texts] = [[], document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT)];
    while (texts.nextNode()) {
        const [holder, letters] = [texts.currentNode.parentElement, document.createRange()];
        if (!texts.currentNode.data.trim() || !holder.checkVisibility({ visibilityProperty: true })) continue;
        if (getComputedStyle(holder).clipPath !== "none") continue; // for screen readers
        letters.selectNodeContents(texts.currentNode);
        const [inner, outer] = [letters, texts.root].map((each) => each.getBoundingClientRect());
        if (inner.left < outer.left || inner.right > outer.right) found.push(texts.currentNode.data.trim());
    }
    return found;
}"""


def seen(page: Page, name: str) -> None:
    """Takes a picture if one is wanted, and sees that nothing is cut off at the side."""
    screenshots.take(page, f"pay-{name}")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} is cut off"
    assert page.evaluate(CUT_OFF) == [], name


def text_of(html: str) -> str:
    """The page's text for a customer, in one line, without the marks of direction."""
    inline = r"</?(?:a|b|bdi|span|strong|time)\b[^>]*>"
    text = unescape(re.sub("<[^>]*>", " ", re.sub(inline, "", re.split("<body[^>]*>", html)[-1])))
    return " ".join(re.sub("[\u2066-\u2069]", "", text).split())


def title_of(html: str) -> str:
    (title,) = re.findall(r"<h1>(.*?)</h1>", html, re.DOTALL)
    return text_of(title)


def heading(page: Page, text: str) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text(text)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name).click()


def follow(page: Page, name: str) -> None:
    page.get_by_role("link", name=name).click()


def status_of(shop: Shop, invoice: dict[str, Any]) -> str:
    data = shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"]
    deal = data["deal"]
    return f"{data['status']} {deal['sub_status']}" if deal else str(data["status"])


def until_expiry(desk: Desk, deal_id: str, seconds: int) -> None:
    """What nobody waits for in a test."""
    statement = "UPDATE deals SET expires_at = now() + make_interval(secs => %s) WHERE id = %s"
    desk.database("invoices", statement, seconds, deal_id)
