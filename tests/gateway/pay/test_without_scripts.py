"""The customer's page in a real browser, without JavaScript: every state, the way back, two tabs, a small phone.

`SCREENSHOTS=1` takes a picture of each state (tests/support/screenshots.py).
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from fiatgate.invoices.v1 import invoices_pb2
from gateway.pay.view import OUTCOMES
from tests.gateway.desk import Desk, Shop
from tests.gateway.pay.conftest import Open
from tests.gateway.pay.pages import follow, heading, press, seen, status_of


@pytest.fixture(params=["light", "dark"])
def theme(request: pytest.FixtureRequest) -> str:
    text: str = request.param
    return text


# -- the way through


def test_a_customer_pays(open_page: Open, desk: Desk, shop: Shop, theme: str) -> None:
    invoice = shop.create(amount="1234.50" if theme == "light" else "1234.60", purpose="Two lamps & a table")
    page = open_page(scripts=False, color_scheme=theme)
    page.goto(invoice["payment_link"])
    heading(page, "Choose how to pay")
    expect(page.locator("header")).to_contain_text("Lamp shop")
    expect(page.locator("header")).to_contain_text("Two lamps & a table")
    total = "1,265.37" if theme == "light" else "1,265.47"  # 2.5 % are the customer's, rounded up
    expect(page.get_by_role("button")).to_contain_text(total)
    seen(page, f"choose-{theme}")

    press(page, "Card to card")
    heading(page, "Pay with Card to card")
    expect(page.locator(".value.big")).to_contain_text(total)
    expect(page.locator(".account")).to_have_text("4000002500003155")  # in groups for the eye only
    expect(page.locator("dl.fields")).to_contain_text("Alex Tester")
    expect(page.locator("dl.fields")).to_contain_text("Test Bank")
    expect(page.locator(".countdown time")).to_contain_text("UTC")
    seen(page, f"pay-{theme}")

    press(page, "I have paid")
    heading(page, "We are checking your payment")
    assert status_of(shop, invoice) == "pending awaiting_confirmation"
    seen(page, f"waiting-{theme}")

    deal = shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"]["deal"]
    desk.deals.ConfirmDeal(invoices_pb2.ConfirmDealRequest(deal_id=deal["deal_id"]))
    if theme == "dark":
        follow(page, "Check again")
    # Else nobody touches anything: the page looks again by itself.
    expect(page.get_by_role("heading", level=1)).to_have_text("Payment received", timeout=15_000)
    expect(page.get_by_role("link", name="Return to Lamp shop")).to_have_attribute(
        "href", invoice["success_url"]
    )
    seen(page, f"success-{theme}")


def test_the_customer_is_sent_back_to_the_shop(page: Page, desk: Desk, shop: Shop) -> None:
    elsewhere = f"{shop.create()['payment_link']}?from=page"
    invoice = shop.create(fail_url=elsewhere)
    desk.cancel(invoice["invoice_id"])
    page.goto(invoice["payment_link"])
    heading(page, "Payment canceled")
    page.wait_for_url(elsewhere, timeout=15_000)


def test_the_customer_may_stay(page: Page, desk: Desk, shop: Shop, method: str) -> None:
    """Who reads slowly, or wants to print the receipt, has all the time."""
    invoice = shop.create()
    desk.confirm(invoice["invoice_id"], method)
    page.goto(invoice["payment_link"])
    follow(page, "Stay here")
    expect(page.get_by_role("link", name="Stay here")).to_have_count(0)
    assert 'http-equiv="refresh"' not in page.content()
    expect(page.get_by_role("link", name="Return to Lamp shop")).to_be_visible()
    expect(page.locator(".receipt time")).to_have_text(re.compile(r"^\w+ \d+, \d{4}, .* UTC$"))


def test_a_customer_chooses_another_method(page: Page, desk: Desk, shop: Shop) -> None:
    other = desk.method(shop.currency, name="Bank transfer", commission="0")
    desk.requisite(other, account="DE89 3704 0044 0532 0130 00", bank=None)
    invoice = shop.create(amount="2000.00")
    page.goto(invoice["payment_link"])
    press(page, "Card to card")
    follow(page, "Choose another method")
    expect(page.get_by_role("button", name="Card to card")).to_contain_text("selected")
    seen(page, "choose-another")
    press(page, "Bank transfer")
    heading(page, "Pay with Bank transfer")
    expect(page.locator(".value.big")).to_contain_text("2,040.00")
    expect(page.locator(".account")).to_have_text("DE89370400440532013000")
    expect(page.locator("dl.fields")).not_to_contain_text("Bank")


def test_canceling_is_asked_twice(page: Page, shop: Shop) -> None:
    invoice = shop.create()
    page.goto(invoice["payment_link"])
    press(page, "Card to card")
    follow(page, "Cancel the payment")
    heading(page, "Cancel this payment?")
    expect(page.locator(".warning")).to_contain_text("Have you already sent the money?")
    seen(page, "cancel")
    follow(page, "No, go back to the payment")
    heading(page, "Pay with Card to card")
    follow(page, "Cancel the payment")
    press(page, "Yes, cancel it")
    heading(page, "Payment canceled")
    assert status_of(shop, invoice) == "canceled canceled_by_customer"
    seen(page, "canceled")


def test_a_customer_asks_for_a_check(page: Page, desk: Desk, shop: Shop) -> None:
    invoice = shop.create()
    page.goto(invoice["payment_link"])
    press(page, "Card to card")
    press(page, "I have paid")
    follow(page, "Report a problem")
    page.get_by_label("Your message").fill("Paid at noon.\nFrom 4000 0000.")
    seen(page, "appeal")
    press(page, "Send the report")
    heading(page, "Our team is checking your payment")
    assert status_of(shop, invoice) == "pending opened_by_customer"
    seen(page, "review")


@pytest.mark.parametrize(
    ("outcome", "title"),
    [("rejected", "The payment did not go through"), ("adjusted_amount", "Payment received")],
)
def test_a_checked_payment_shows_its_outcome(
    page: Page, desk: Desk, shop: Shop, method: str, outcome: str, title: str
) -> None:
    invoice = shop.create(amount=f"30{len(outcome)}.00")
    deal = desk.mark_paid(invoice["invoice_id"], method)
    desk.deals.OpenAppeal(invoices_pb2.OpenAppealRequest(deal_id=deal.deal_id))
    resolved = invoices_pb2.ResolveAppealRequest(deal_id=deal.deal_id)
    if outcome == "rejected":
        resolved.rejected = True
    else:
        resolved.adjusted_amount = "150.00"
    desk.by_two(lambda: desk.deals.ResolveAppeal(resolved))
    page.goto(invoice["payment_link"])
    heading(page, title)
    if outcome == "adjusted_amount":
        expect(page.locator("header")).to_contain_text("150.00")
    seen(page, outcome)


# -- never wrong


@pytest.mark.parametrize("scripts", [False, True])
def test_every_page_can_be_reloaded(open_page: Open, shop: Shop, scripts: bool) -> None:
    """After a POST the browser stands on a GET: reloading sends nothing again."""
    page = open_page(scripts=scripts)
    invoice = shop.create()
    page.goto(invoice["payment_link"])
    for press_this, title in (
        (None, "Choose how to pay"),
        ("Card to card", "Pay with Card to card"),
        ("I have paid", "We are checking your payment"),
    ):
        if press_this:
            press(page, press_this)
        heading(page, title)
        response = page.reload()
        assert response is not None
        assert response.request.method == "GET"
        heading(page, title)
    assert status_of(shop, invoice) == "pending awaiting_confirmation"


def test_the_way_back_leads_to_the_state_as_it_is(page: Page, shop: Shop) -> None:
    invoice = shop.create()
    page.goto(invoice["payment_link"])
    press(page, "Card to card")
    press(page, "I have paid")
    heading(page, "We are checking your payment")
    page.go_back()
    # `no-store`: the browser asks again instead of showing what was.
    heading(page, "We are checking your payment")


def test_two_tabs_agree(page: Page, desk: Desk, shop: Shop) -> None:
    other = desk.method(shop.currency, name="Second method")
    desk.requisite(other, account="1111222233334444")
    invoice = shop.create()
    page.goto(invoice["payment_link"])
    press(page, "Card to card")
    second = page.context.new_page()
    second.goto(invoice["payment_link"])
    follow(second, "Choose another method")
    press(second, "Second method")
    heading(second, "Pay with Second method")
    # The first tab still shows the first account: saying "I have paid" there must not be taken for the second.
    press(page, "I have paid")
    expect(page.get_by_role("status")).to_contain_text("changed since you loaded the page")
    heading(page, "Pay with Second method")
    assert status_of(shop, invoice) == "pending awaiting_payment"
    seen(page, "notice")
    second.close()


def test_an_invoice_canceled_in_another_tab_shows_its_outcome(page: Page, desk: Desk, shop: Shop) -> None:
    invoice = shop.create()
    page.goto(invoice["payment_link"])
    desk.cancel(invoice["invoice_id"])
    press(page, "Card to card")
    heading(page, "Payment canceled")


def test_everything_works_from_the_keyboard(page: Page, shop: Shop) -> None:
    invoice = shop.create()
    page.goto(invoice["payment_link"])
    page.keyboard.press("Tab")
    expect(page.get_by_role("button").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("Pay with")
    page.keyboard.press("Tab")  # the QR code
    page.keyboard.press("Tab")
    page.keyboard.type("Eve Example")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="I have paid")).to_be_focused()
    page.keyboard.press("Enter")
    heading(page, "We are checking your payment")
    expect(page.locator(".step")).to_contain_text("Sent from the account of Eve Example")


def test_long_and_strange_texts_fit_a_small_phone(page: Page, desk: Desk, shop: Shop) -> None:
    other = desk.shop(shop.currency, name="W" * 128)
    invoice = other.create(purpose="<b>" + "x" * 500, amount="99999.99")
    page.goto(invoice["payment_link"])
    heading(page, "Choose how to pay")
    expect(page.locator("header")).to_contain_text("<b>xxx")
    seen(page, "long-texts")


def test_an_unknown_payment_says_so_kindly(page: Page, shop: Shop) -> None:
    response = page.goto(f"{shop.url}/pay/0192f0c1-2345-7abc-8def-0123456789ab")
    assert response is not None
    assert response.status == 404
    heading(page, "Payment not found")
    seen(page, "not-found")


def test_every_outcome_of_the_api_has_words(shop: Shop) -> None:
    """A status that the template doesn't know would be a blank page at the worst moment."""
    template = (Path(__file__).parents[3] / "gateway/pay/templates/outcome.html").read_text()
    assert all(f'"{outcome}"' in template for outcome in OUTCOMES.values())
