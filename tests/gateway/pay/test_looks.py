"""Every state of the page, as axe-core and the eye see it: light and dark, in both directions of writing."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Page, expect

from fiatgate.invoices.v1 import invoices_pb2 as pb
from tests.gateway.desk import Desk, Shop
from tests.gateway.pay.conftest import PHONE, Open, launched
from tests.gateway.pay.pages import heading, seen, until_expiry
from tests.support import axe

WIDTHS: Final = (369, 544, 960, 1280)
"""Besides that of the smallest phone: the narrowest after each change in the stylesheet, and a desktop."""
TOUCH_PIXELS = 44
SMALL = """least => [...document.querySelectorAll("a, button, summary, input:not([type=hidden]), textarea")]
    .filter(each => each.checkVisibility())
    .map(each => [each.outerHTML.slice(0, 80), each.getBoundingClientRect()])
    .filter(([, box]) => box.height < least - .5 || box.width < least - .5)
    .map(([html, box]) => `${html}: ${box.width} x ${box.height}`)"""


@pytest.fixture(scope="module")
def pages(desk: Desk, currency: str) -> dict[str, str]:
    """An address in each state; transfers carry references."""
    method = desk.method(currency, takes_reference=True)
    full = desk.method(currency, name="One account", max_sum="99")
    for each in (method, full):
        desk.requisite(each)
    shop = desk.shop(currency, allowed_methods=[method, full])
    other = desk.shop(currency, allowed_methods=[method], name="W" * 128)

    def invoice(**changes: Any) -> tuple[str, str]:
        created = shop.create(**changes)
        return created["invoice_id"], created["payment_link"]

    def canceled() -> tuple[str, str]:
        created = invoice()
        desk.choose(created[0], method)
        desk.cancel(created[0])
        return created

    def told() -> tuple[str, int]:
        id, link = canceled()
        return link, desk.checkout.OpenCase(pb.OpenCaseRequest(invoice_id=id)).case.number

    fresh, open_one, marked, slow, appealed, done, failed, nobody, expired = (invoice() for _ in range(9))
    desk.choose(open_one[0], method)
    until_expiry(desk, desk.choose(expired[0], method).deal_id, -1)
    desk.mark_paid(marked[0], method, sender_name="محمد عبد الله")
    desk.database("invoices", _LONG_AGO, desk.mark_paid(slow[0], method).deal_id)
    appeal = pb.OpenAppealRequest(deal_id=desk.mark_paid(appealed[0], method).deal_id)
    desk.deals.OpenAppeal(appeal)
    desk.confirm(done[0], method)
    reject = pb.RejectDealRequest(deal_id=desk.mark_paid(failed[0], method).deal_id)
    desk.deals.RejectDeal(reject)
    desk.cancel(nobody[0])
    answered = told()
    desk.choose(invoice(amount="77.70")[0], full)
    desk.deals.ResolveCase(
        pb.ResolveCaseRequest(number=answered[1], outcome="Sent back to your account", ended_as="answer_only")
    )
    return {
        "choose": fresh[1],
        "taken": invoice(amount="77.70")[1],
        "choose-again": f"{open_one[1]}/methods?notice=no_available_requisites",
        "pay": open_one[1],
        "cancel": f"{open_one[1]}/cancel",
        "waiting": marked[1],
        "slow": slow[1],
        "appeal": f"{marked[1]}/appeal",
        "review": appealed[1],
        "success": done[1],
        "canceled": nobody[1],
        "failed": failed[1],
        "expired": expired[1],
        "late": f"{canceled()[1]}/late",
        "case": told()[0],
        "answered": answered[0],
        "unknown": f"{shop.url}/pay/none",
        "long-texts": other.create(purpose="<b>" + "x" * 500, amount="99999.99")["payment_link"],
    }


_LONG_AGO = "UPDATE deals SET mark_paid_at = now() - interval '16 minutes' WHERE id = %s"


def test_nothing_stands_in_anybodys_way(open_page: Open, pages: dict[str, str]) -> None:
    """In Arabic, light, at every width. On a desktop it is no stretched phone: the order stands beside the steps."""
    page = open_page(color_scheme="light", locale="ar")
    page.route("https://shop.example/**", lambda route: route.fulfill(status=204))  # so the page stays
    found = []
    for state, url in pages.items():
        page.set_viewport_size(PHONE)
        page.goto(url)
        found += stumbling_blocks(page, state, axe.RULES)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            widest = page.evaluate("document.documentElement.scrollWidth")
            assert widest <= width, f"{state} is cut off at {width}"
            if width == 1280:
                seen(page, f"{state}-desktop")
                order, step = page.locator("header"), page.locator(".step")
                assert state == "unknown" or _left(order) > _left(step), "from right to left"
    assert not found, "\n".join(found)


def test_nothing_stands_in_anybodys_way_in_the_dark_and_without_scripts(
    open_page: Open, pages: dict[str, str]
) -> None:
    """Ours do not come. Axe is one itself, and a browser that runs none doesn't run it."""
    page = open_page(color_scheme="dark", locale="en")
    page.route("**/*.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    found = []
    for state, url in pages.items():
        page.goto(url)
        found += stumbling_blocks(page, f"{state}-dark-without-scripts", axe.CONTRAST)
    assert not found, "\n".join(found)


def stumbling_blocks(page: Page, name: str, rules: Mapping[str, Any]) -> list[str]:
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    seen(page, name)
    small = [f"{name}: too small: {each}" for each in page.evaluate(SMALL, TOUCH_PIXELS)]
    return [*complaints(page, name, rules), *small]


def test_the_last_minutes_stand_in_nobodys_way(page: Page, desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    until_expiry(desk, desk.choose(invoice["invoice_id"], method).deal_id, 100)
    page.goto(invoice["payment_link"])
    expect(page.locator(".countdown")).to_have_class("countdown near")
    seen(page, "near")
    assert not complaints(page, "near")
    page.emulate_media(color_scheme="dark")
    assert not complaints(page, "near, dark", axe.CONTRAST)


def _left(element: Any) -> int:
    box = element.bounding_box()
    assert box
    return int(box["x"])


def test_a_receipt_can_be_printed(open_page: Open, pages: dict[str, str]) -> None:
    """Dark or light, what comes on paper is the receipt alone, in black."""
    page = open_page(color_scheme="dark")
    page.goto(pages["success"])
    heading(page, "Payment received")
    page.emulate_media(media="print", color_scheme="dark")
    seen(page, "receipt-printed")
    expect(page.locator(".receipt dl")).to_be_visible()
    for gone in ("footer", "[data-print]", "[data-return]", "[data-return-seconds]"):
        expect(page.locator(gone)).to_be_hidden()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    for paper in ("A4", "Letter"):
        assert re.findall(rb"/Count (\d+)", page.pdf(format=paper)) == [b"1"]


def test_who_wants_no_motion_or_the_systems_colours_has_it_so(open_page: Open, pages: dict[str, str]) -> None:
    page = open_page(reduced_motion="reduce", forced_colors="active")
    for state in ("choose", "pay", "waiting", "success"):
        page.goto(pages[state])
        seen(page, f"{state}-forced-colours")
        assert not page.evaluate("document.getAnimations().length")
    moving = open_page()
    moving.goto(pages["waiting"])
    assert moving.evaluate("document.getAnimations().length") == 1


def test_the_largest_amounts_and_letters_fit_the_smallest_phone(browser: Browser, desk: Desk) -> None:
    """Who sees little has letters twice as large, and an amount of which digits are missing is another amount."""
    currency = desk.currency(max_amount="99999999")
    method = desk.method(currency, max_sum="99999999")
    desk.requisite(method)
    shop = desk.open_shop(currency)
    invoices = [shop.create(amount=f"97000000.{cents}") for cents in range(50, 54)]
    steps: Sequence[Callable[[str, str], object]] = (desk.choose, desk.mark_paid, desk.confirm)
    for invoice, step in zip(invoices[1:], steps, strict=True):
        step(invoice["invoice_id"], method)
    other = launched(browser.browser_type, "--blink-settings=defaultFontSize=32")
    for language in ("ar", "de"):
        page = other.new_page(locale=language, viewport=PHONE)
        for number, invoice in enumerate(invoices):
            page.goto(invoice["payment_link"])
            assert page.evaluate("getComputedStyle(document.documentElement).fontSize") == "32px"
            seen(page, f"large-{number}-{language}")
    other.close()


def test_the_longest_words_fit_the_smallest_phone(page: Page, pages: dict[str, str]) -> None:
    for language in ("es", "pt", "de", "fr", "tr", "ru", "uk", "kk", "hi", "zh"):
        for state in ("choose", "pay", "waiting", "success"):
            page.goto(f"{pages[state]}?lang={language}")
            seen(page, f"{state}-{language}")


def complaints(page: Page, state: str, rules: Mapping[str, Any] = axe.RULES) -> list[str]:
    return [
        f"{state}: {violation['id']}: {violation['help']}: {[node['html'] for node in violation['nodes']]}"
        for violation in axe.violations(page, rules)
    ]
