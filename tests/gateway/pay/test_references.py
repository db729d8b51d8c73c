"""References, senders' names and full methods, as customers see them on the page."""

import re
from typing import Any

import pytest
import requests

from fiatgate.invoices.v1 import invoices_pb2 as pb
from gateway.pay.qr import svg_of
from kit.base.codes import in_groups, parse_code
from tests.e2e.market import Customer
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop
from tests.gateway.pay.pages import text_of, title_of, until_expiry

SENDER = "<b>محمد</b> & 'Co'"


@pytest.fixture(scope="module")
def its_method(desk: Desk, referenced: Shop) -> str:
    data = referenced.get("/api/v1/payment-methods").json()["data"]
    return str(data[0]["method_code"])


def deal_of(desk: Desk, invoice: dict[str, Any]) -> pb.Deal:
    answer = desk.checkout.GetCheckout(pb.GetCheckoutRequest(invoice_id=invoice["invoice_id"]))
    return answer.invoice.deal


def post(invoice: dict[str, Any], step: str, **fields: str) -> requests.Response:
    url = f"{invoice['payment_link']}/{step}"
    return requests.post(url, data=fields, timeout=HTTP_SECONDS, allow_redirects=False)


def test_a_customer_pays_with_the_reference_and_gives_a_name(
    desk: Desk, referenced: Shop, its_method: str
) -> None:
    invoice = referenced.create()
    customer = Customer(invoice["payment_link"])
    customer.choose(its_method)
    deal = deal_of(desk, invoice)
    assert parse_code(deal.reference) == deal.reference
    assert f"Write this reference into the transfer {deal.reference} " in text_of(customer.page)
    for group in in_groups(deal.reference).split():
        assert f'<span class="group">{group}</span>' in customer.page
    post(invoice, "paid", deal_id=deal.deal_id, sender_name=SENDER)
    customer.open()
    assert title_of(customer.page) == "We are checking your payment"
    for text in (deal.reference, f"Sent from the account of {SENDER}"):
        assert text in text_of(customer.page)
    assert deal_of(desk, invoice).sender_name == SENDER
    customer.follow("Report a problem")
    assert deal.reference in text_of(customer.page)
    desk.deals.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal.deal_id))
    customer.open()
    receipt = text_of(customer.page)
    for text in (f"Order number {invoice['external_id']}", f"Payment reference {deal.reference}"):
        assert text in receipt
    assert "محمد" not in receipt


def test_late_money_is_reported_with_the_reference(desk: Desk, referenced: Shop, its_method: str) -> None:
    invoice = referenced.create()
    deal = desk.choose(invoice["invoice_id"], its_method)
    until_expiry(desk, deal.deal_id, -1)
    customer = Customer(invoice["payment_link"])
    assert title_of(customer.page) == "Time ran out"
    assert deal.reference in text_of(customer.page)
    customer.follow("I have already paid")
    assert deal.reference in text_of(customer.page)


def test_a_method_without_references_asks_for_none(desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    customer = Customer(invoice["payment_link"])
    customer.choose(method)
    deal = deal_of(desk, invoice)
    assert parse_code(deal.reference)
    assert "reference" not in text_of(customer.page)
    assert deal.reference not in text_of(customer.page)
    customer.submit("I have paid")
    assert deal.reference in text_of(customer.page)
    assert not deal_of(desk, invoice).HasField("sender_name")


def test_the_code_in_euro_has_the_reference(desk: Desk) -> None:
    """EPC069-12: the reference is the unstructured remittance information."""
    iban = "DE02120300000000202051"
    for reference in (True, False):
        method = desk.method("EUR", takes_reference=reference)
        desk.requisite(method, account=iban)
        invoice = desk.shop("EUR", allowed_methods=[method]).create()
        deal = desk.choose(invoice["invoice_id"], method)
        code = requests.get(f"{invoice['payment_link']}/qr.svg", timeout=HTTP_SECONDS)
        lines = ["BCD", "002", "1", "SCT", "", "Alex Tester", iban, f"EUR{deal.amount_fiat}"]
        assert code.content == svg_of("\n".join([*lines, "", "", deal.reference] if reference else lines))


def test_merchants_get_neither_the_reference_nor_the_name(
    desk: Desk, referenced: Shop, its_method: str
) -> None:
    invoice = referenced.create()
    deal = desk.mark_paid(invoice["invoice_id"], its_method, sender_name="Eve Example")
    answer = referenced.get(f"/api/v1/invoices/{invoice['invoice_id']}").text
    assert deal.reference not in answer
    assert "Eve" not in answer


# -- names that are none


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ({"sender_name": "  Eve \r\n Example "}, "Eve Example"),
        ({"sender_name": "\u202eevE\x00\x1b[31m"}, "evE[31m"),
        ({"sender_name": "می\u200cخواهم"}, "می\u200cخواهم"),
        ({"sender_name": "x" * 500}, "x" * 128),
        ({"sender_name": "\u200b \u200f"}, None),
        ({"sender_name": ""}, None),
        ({}, None),
    ],
)
def test_a_name_is_stored_as_one_line_without_marks(
    desk: Desk, shop: Shop, method: str, typed: dict[str, str], stored: str | None
) -> None:
    invoice = shop.create()
    deal = desk.choose(invoice["invoice_id"], method)
    answer = post(invoice, "paid", deal_id=deal.deal_id, **typed)
    assert (answer.status_code, "notice" in answer.headers["Location"]) == (303, False)
    marked = deal_of(desk, invoice)
    assert marked.HasField("mark_paid_at")
    assert (marked.sender_name if marked.HasField("sender_name") else None) == stored


# -- full methods


def test_a_full_method_is_greyed_out_with_a_time_and_nothing_else(
    desk: Desk, currency: str, method: str
) -> None:
    full = desk.method(currency, name="One account", max_sum="99")
    desk.requisite(full)
    shop = desk.shop(currency, allowed_methods=[full, method])
    first, waiting = (shop.create(amount="66.60") for _ in range(2))
    holder = desk.choose(first["invoice_id"], full)
    customer = Customer(waiting["payment_link"])

    def button(code: str) -> str:
        """The button of the method, which is disabled or not."""
        customer.open()
        (found,) = re.findall(rf'value="{code}">\n(<button.*?</button>)', customer.page, re.DOTALL)
        return str(found)

    taken = button(full)
    assert taken.startswith('<button class="method" disabled>')
    assert "All accounts are in use. A place may become free at" in taken
    (moment,) = re.findall('<time datetime="([^"]+)"', taken)
    assert moment[:19] == holder.expires_at.ToJsonString()[:19]
    assert holder.deal_id not in customer.page
    assert first["invoice_id"] not in customer.page
    assert button(method).startswith('<button class="method">')
    desk.checkout.MarkPaid(pb.MarkPaidRequest(invoice_id=first["invoice_id"], deal_id=holder.deal_id))
    assert "All accounts are in use. Please try again later." in button(full)
    assert "<time" not in button(full)
    forced = post(waiting, "methods", method_code=full)
    assert "notice=no_available_requisites" in forced.headers["Location"]
    desk.deals.RejectDeal(pb.RejectDealRequest(deal_id=holder.deal_id))
    assert button(full).startswith('<button class="method">')
