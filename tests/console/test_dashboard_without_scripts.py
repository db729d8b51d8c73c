"""A merchant's work in a browser without scripts, on a small phone: nothing that the dashboard does needs a script."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from tests.console.conftest import Open
from tests.console.house import PASSWORD, House, Person
from tests.console.looks import FITS, PHONE
from tests.console.passkeys import heading, press
from tests.console.payouts import TRON_ADDRESS, wait_is_over
from tests.gateway.desk import Desk, Shop, settled, unique
from tests.support import screenshots
from tests.support.pictures import PNG
from tests.support.receiver import Answer, Receiver
from tests.support.stack import Stack

USELESS: Final = """() => [...document.querySelectorAll("button")]
  .filter((each) => each.checkVisibility() && (each.disabled || !each.form)).map((each) => each.outerHTML)"""
"""Buttons that are seen and send nothing."""


@dataclass(frozen=True)
class Stand:
    """A merchant whose server is down, and its owner."""

    desk: Desk
    method: str
    shop: Shop
    receiver: Receiver
    owner: Person


@pytest.fixture(scope="module")
def stand(stack: Stack, house: House) -> Iterator[Stand]:
    with Desk(stack) as desk, Receiver() as receiver:
        currency = desk.currency()
        method = desk.method(currency, name="Bank transfer")
        desk.requisite(method)
        shop = desk.open_shop(currency, name="Lamps", callback_url=receiver.url())
        receiver.answer(Answer(status=503, body=b"no space left on device"))
        owner = house.person("owner", merchant=shop.merchant_id, name="Mary Somerville")
        owner.add_factors()
        yield Stand(desk, method, shop, receiver, owner)


def confirm(page: Page, name: str, button: str) -> None:
    """Opens the question behind a word and agrees."""
    page.locator("summary").filter(has_text=re.compile(f"^{name}$")).click()
    press(page, button)


def at(page: Page, url: str) -> None:
    """Opens the page: nothing is cut off, no button waits for a script."""
    page.goto(url)
    fits(page)


def fits(page: Page) -> None:
    name = re.sub(r"\W+", "-", page.url.partition("://")[2].partition("/")[2].partition("?")[0])
    screenshots.take(page, f"console-plain-{re.sub('[0-9a-f-]{36}', 'id', name) or 'home'}")
    assert page.evaluate(FITS), f"{page.url} is cut off"
    assert page.evaluate(USELESS) == [], page.url


def test_all_work_is_done_without_scripts(stand: Stand, house: House, open_page: Open) -> None:
    page, dashboard = open_page(scripts=False, viewport=PHONE), house.dashboard
    sign_in(page, stand, dashboard)
    make_a_key(page, stand, dashboard, house)
    change_settings(page, dashboard)
    sell_by_hand(page, stand, dashboard)
    resend(page, stand, dashboard)
    withdraw(page, stand, dashboard)
    read(page, dashboard)


def sign_in(page: Page, stand: Stand, dashboard: str) -> None:
    at(page, f"{dashboard}/invoices")
    heading(page, "Sign in")
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_be_hidden()
    page.get_by_label("E-mail address").fill(stand.owner.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Code").fill(stand.owner.code())
    press(page, "Sign in")
    heading(page, "Invoices")
    page.get_by_role("link", name="Menu").click()
    page.get_by_role("link", name="API keys").click()
    heading(page, "API keys")


def make_a_key(page: Page, stand: Stand, dashboard: str, house: House) -> None:
    house.end_step_up(stand.owner.email)
    page.get_by_label("Name").fill("till")
    press(page, "Make a key")
    heading(page, "Confirm that it is you")
    fits(page)
    page.get_by_label("Code").fill(stand.owner.code(1))
    press(page, "Confirm")
    fits(page)
    for name in ("API key", "Signing secret"):
        assert len(page.get_by_label(name).input_value()) > 20
    page.get_by_role("link", name="Done").click()
    expect(page.locator("[data-row]").filter(has_text="till")).to_contain_text("active")


def change_settings(page: Page, dashboard: str) -> None:
    at(page, f"{dashboard}/settings")
    page.get_by_label("Colour").fill("#8a2b0a")
    press(page, "Preview")
    expect(page.frame_locator("[data-preview]").get_by_role("button", name="I have paid")).to_have_css(
        "background-color", "rgb(138, 43, 10)"
    )
    page.locator("#shown").get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("The settings are saved.")
    at(page, f"{dashboard}/settings/logo")
    page.locator("input[type=file]").set_input_files(
        {"name": "shop.png", "mimeType": "image/png", "buffer": PNG}
    )
    press(page, "Show me how it looks")
    expect(page.frame_locator("iframe").get_by_role("button", name="I have paid")).to_be_visible()
    fits(page)
    press(page, "Use it as the logo")
    expect(page.get_by_role("status")).to_have_text("The logo is in use.")


def sell_by_hand(page: Page, stand: Stand, dashboard: str) -> None:
    at(page, f"{dashboard}/links/new")
    page.get_by_label("Amount").fill("90000.00")
    page.get_by_label("Currency").select_option(stand.shop.currency)
    page.get_by_label("Customer").fill(unique("zoe"))
    with page.expect_response(re.compile(r"/qr\.svg$")) as found:
        press(page, "Make the link")
    assert found.value.ok
    fits(page)
    heading(page, re.compile("Payment link"))
    assert page.get_by_alt_text("QR code").evaluate("each => each.naturalWidth") > 100
    with page.expect_download() as code:
        page.get_by_role("link", name="Save the QR code").click()
    assert code.value.suggested_filename == "payment-link.svg"
    link = page.get_by_label("Send this to your customer").input_value()
    stand.desk.confirm(link.rpartition("/")[2], stand.method)


def resend(page: Page, stand: Stand, dashboard: str) -> None:
    stand.receiver.wait_for(1)
    settled(lambda: "/webhooks/" in stand.owner.get("/webhooks?state=retrying").text, "the attempt")
    at(page, f"{dashboard}/")
    page.get_by_role("link", name="See why").click()
    fits(page)
    page.locator("tbody th a").first.click()
    heading(page, re.compile("^Webhook of"))
    fits(page)
    expect(page.locator(".attempt")).to_contain_text("Your server answered 503")
    page.get_by_text("Answer of attempt 1").click()
    expect(page.get_by_text("no space left on device").first).to_be_visible()
    stand.receiver.answer(Answer())
    confirm(page, "Resend", "Resend now")
    expect(page.get_by_role("status")).to_contain_text("your server has accepted it")
    page.get_by_role("link", name="Send a test event there").click()
    press(page, "Send it now")
    expect(page.get_by_role("heading", name="What came back")).to_contain_text("accepted")
    fits(page)


def withdraw(page: Page, stand: Stand, dashboard: str) -> None:
    settled(lambda: float(stand.desk.available(stand.shop)) > 500, "the credit")
    at(page, f"{dashboard}/addresses")
    page.get_by_label("Address", exact=True).fill(TRON_ADDRESS)
    page.get_by_label("Name").fill("cold wallet")
    press(page, "Add the address")
    fits(page)
    remove = page.locator("form[action$='/remove']").get_attribute("action") or ""
    wait_is_over(stand.desk.stack, remove.split("/")[2])
    at(page, f"{dashboard}/withdrawals")
    page.get_by_role("link", name="Request a withdrawal").click()
    fits(page)
    page.get_by_label("Amount in USDT").fill("30")
    press(page, "Look at it")
    fits(page)
    press(page, "Request the withdrawal")
    expect(page.get_by_role("status")).to_contain_text("the operator is asked to send it")
    fits(page)
    confirm(page, "Cancel it", "Cancel the withdrawal")
    expect(page.get_by_role("status")).to_contain_text("available again")


def read(page: Page, dashboard: str) -> None:
    """Lists, files, and the link to the guide: tests/gateway/pay/test_guide.py reads it and /docs without scripts."""
    for path in ("/invoices", "/balance", "/webhooks?state=all", "/withdrawals", "/people", "/audit"):
        at(page, dashboard + path)
        with page.expect_download() as found:
            page.get_by_role("link", name="CSV").click()
        lines = found.value.path().read_text().splitlines()
        assert len(lines) > 1, path
    page.goto(f"{dashboard}/invoices")
    page.get_by_text("Filters").click()
    page.get_by_label("Customer").fill("nobody")
    press(page, "Filter")
    expect(page.locator("tbody tr")).to_have_count(0)
    at(page, f"{dashboard}/balance")
    page.get_by_role("link", name="Month before").click()
    fits(page)
    page.get_by_role("link", name="Print").click()
    fits(page)
    page.goto(f"{dashboard}/")
    guide = page.get_by_role("link", name="The guide for developers")
    expect(guide).to_have_attribute("href", re.compile("/docs/guide$"))
