"""The customer's page without JavaScript: once in a real browser, and its links and forms over HTTP.

`SCREENSHOTS=1` takes a picture of each state (tests/support/screenshots.py).
"""

import re

from playwright.sync_api import expect

from fiatgate.invoices.v1 import invoices_pb2
from tests.e2e.market import Customer
from tests.gateway.desk import Desk, Shop
from tests.gateway.pay.conftest import Open
from tests.gateway.pay.pages import heading, press, seen, status_of, text_of, title_of


def test_a_customer_pays(open_page: Open, desk: Desk, shop: Shop) -> None:
    invoice = shop.create(amount="1234.50", purpose="Two lamps & a table")
    page = open_page(scripts=False)
    page.goto(invoice["payment_link"])
    heading(page, "Choose how to pay")
    expect(page.locator("header")).to_contain_text("Lamp shop")
    expect(page.locator("header")).to_contain_text("Two lamps & a table")
    total = "1,265.37"  # 2.5 % are the customer's, rounded up
    expect(page.get_by_role("button")).to_contain_text(total)
    seen(page, "choose")

    press(page, "Card to card")
    heading(page, "Pay with Card to card")
    expect(page.locator(".value.big")).to_contain_text(total)
    expect(page.locator(".account")).to_have_text("4000002500003155")  # in groups for the eye only
    expect(page.locator("dl.fields")).to_contain_text("Alex Tester")
    expect(page.locator("dl.fields")).to_contain_text("Test Bank")
    expect(page.locator(".countdown time")).to_contain_text("UTC")
    seen(page, "pay")

    press(page, "I have paid")
    heading(page, "We are checking your payment")
    assert status_of(shop, invoice) == "pending awaiting_confirmation"
    expect(page.get_by_role("link", name="Check again")).to_be_visible()
    deal = shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"]["deal"]
    desk.deals.ConfirmDeal(invoices_pb2.ConfirmDealRequest(deal_id=deal["deal_id"]))
    # The customer touches nothing: the page looks again by itself.
    expect(page.get_by_role("heading", level=1)).to_have_text("Payment received", timeout=15_000)
    expect(page.get_by_role("link", name="Return to Lamp shop")).to_have_attribute(
        "href", invoice["success_url"]
    )
    seen(page, "success")


def test_the_customer_is_sent_back_to_the_shop_or_stays(desk: Desk, shop: Shop, method: str) -> None:
    """Who reads slowly, or wants to print the receipt, has all the time."""
    invoice = shop.create()
    desk.confirm(invoice["invoice_id"], method)
    customer = Customer(invoice["payment_link"])
    refresh = f'<meta http-equiv="refresh" content="6; url={invoice["success_url"]}">'
    assert refresh in customer.page
    customer.follow("Stay here")
    assert 'http-equiv="refresh"' not in customer.page
    assert "Stay here" not in customer.page
    text = text_of(customer.page)
    assert "Return to Lamp shop" in text
    assert re.search(r"\w+ \d+, \d{4}, [\d:]+ [AP]M UTC", text)


def test_a_customer_chooses_another_method(desk: Desk, currency: str, method: str) -> None:
    other = desk.method(currency, name="Bank transfer", commission="0")
    desk.requisite(other, account="DE89 3704 0044 0532 0130 00", bank=None)
    shop = desk.shop(currency, allowed_methods=[method, other])
    customer = Customer(shop.create(amount="2000.00")["payment_link"])
    customer.choose(method)
    assert "Bank Test Bank" in text_of(customer.page)
    customer.follow("Choose another method")
    assert re.search(r"Card to card 15 min to pay selected", text_of(customer.page))
    customer.choose(other)
    assert title_of(customer.page) == "Pay with Bank transfer"
    text = text_of(customer.page)
    assert "2,040.00" in text
    assert "DE89370400440532013000" in text
    assert "Test Bank" not in text


def test_canceling_is_asked_twice(shop: Shop, method: str) -> None:
    invoice = shop.create()
    customer = Customer(invoice["payment_link"])
    customer.choose(method)
    customer.follow("Cancel the payment")
    assert title_of(customer.page) == "Cancel this payment?"
    assert "Have you already sent the money?" in customer.page
    customer.follow("No, go back to the payment")
    assert title_of(customer.page) == "Pay with Card to card"
    customer.follow("Cancel the payment")
    customer.submit("Yes, cancel it")
    assert title_of(customer.page) == "Payment canceled"
    assert status_of(shop, invoice) == "canceled canceled_by_customer"


def test_a_rejected_payment_shows_its_outcome(desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    deal_id = desk.mark_paid(invoice["invoice_id"], method).deal_id
    desk.deals.RejectDeal(invoices_pb2.RejectDealRequest(deal_id=deal_id))
    assert title_of(Customer(invoice["payment_link"]).page) == "The payment did not go through"


def test_the_receipt_of_a_part_payment_says_what_was_asked_and_what_came(
    open_page: Open, desk: Desk, shop: Shop, method: str
) -> None:
    invoice = shop.create(amount="475.00")
    desk.accept_part(desk.mark_paid(invoice["invoice_id"], method).deal_id, "70.00")
    read = shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").json()["data"]
    assert (read["amount"], read["final_amount"], read["is_adjusted"]) == ("475.00", "68.29", True)
    page = open_page(scripts=False)
    page.goto(f"{invoice['payment_link']}?stay=yes")
    heading(page, "Part payment accepted")
    said = page.locator(".step")
    expect(said).to_contain_text("You were asked for ")
    for row, amount in (
        *(("Order amount", "475.00"), ("Amount asked for", "486.88")),
        *(("Counts towards the order", "68.29"), ("Fee", "1.71"), ("Amount paid", "70.00")),
    ):
        expect(page.locator(".receipt dl > div").filter(has_text=row)).to_contain_text(amount)
    seen(page, "part-payment")
