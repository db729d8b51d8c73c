"""References, senders' names and full methods, as customers see them on the page."""

from __future__ import annotations

import re
from typing import Any

import pytest
import requests
from playwright.sync_api import Page, expect

from fiatgate.invoices.v1 import invoices_pb2 as pb
from gateway.pay.qr import svg_of
from kit.base.codes import in_groups, parse_code
from tests.gateway.desk import HTTP_SECONDS, Desk, Shop
from tests.gateway.pay.conftest import Open
from tests.gateway.pay.pages import follow, heading, press, seen, until_expiry

SENDER = "<b>محمد</b> & 'Co'"


@pytest.fixture(scope="module")
def method(desk: Desk, currency: str) -> str:
    """One whose transfers carry references, with two accounts."""
    code = desk.method(currency, takes_reference=True)
    for account in ("4000002500003155", "4000003800000446"):
        desk.requisite(code, account=account)
    return code


def deal_of(desk: Desk, invoice: dict[str, Any]) -> pb.Deal:
    answer = desk.checkout.GetCheckout(pb.GetCheckoutRequest(invoice_id=invoice["invoice_id"]))
    return answer.invoice.deal


def test_a_customer_pays_with_the_reference_and_gives_a_name(page: Page, desk: Desk, shop: Shop) -> None:
    invoice = shop.create()
    page.goto(invoice["payment_link"])
    press(page, "Card to card")
    expect(page.locator(".steps")).to_contain_text("Write this reference into the transfer")
    deal = deal_of(desk, invoice)
    shown = page.locator(".steps .value.account.big")
    assert parse_code(shown.inner_text()) == deal.reference
    expect(shown.locator(".group")).to_have_text(in_groups(deal.reference).split())
    page.get_by_label("Name on the account that you paid from").fill(SENDER)
    seen(page, "pay-reference")
    press(page, "I have paid")
    heading(page, "We are checking your payment")
    for text in (deal.reference, f"Sent from the account of {SENDER}"):
        expect(page.locator(".step")).to_contain_text(text)
    seen(page, "waiting-reference")
    assert deal_of(desk, invoice).sender_name == SENDER
    follow(page, "Report a problem")
    expect(page.locator(".step")).to_contain_text(deal.reference)
    desk.deals.ConfirmDeal(pb.ConfirmDealRequest(deal_id=deal.deal_id))
    page.goto(invoice["payment_link"])
    receipt = page.locator(".receipt")
    for text in ("Order number", invoice["external_id"], "Payment reference", deal.reference):
        expect(receipt).to_contain_text(text)
    expect(page.locator("main")).not_to_contain_text("محمد")
    seen(page, "receipt-reference")


def test_the_reference_is_copied_without_its_gap(
    open_page: Open, desk: Desk, shop: Shop, method: str
) -> None:
    invoice = shop.create()
    deal = desk.choose(invoice["invoice_id"], method)
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(invoice["payment_link"])
    press(page, "Copy the reference")
    expect(page.locator("[data-told]")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == deal.reference


def test_late_money_is_reported_with_the_reference(page: Page, desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    deal = desk.choose(invoice["invoice_id"], method)
    until_expiry(desk, deal.deal_id, -1)
    page.goto(invoice["payment_link"])
    heading(page, "Time ran out")
    expect(page.locator(".step")).to_contain_text(deal.reference)
    follow(page, "I have already paid")
    expect(page.locator(".step")).to_contain_text(deal.reference)


def test_a_method_without_references_asks_for_none(page: Page, desk: Desk, shop: Shop) -> None:
    other = desk.method(shop.currency, name="Without a text")
    desk.requisite(other)
    invoice = shop.create()
    page.goto(invoice["payment_link"])
    press(page, "Without a text")
    deal = deal_of(desk, invoice)
    assert parse_code(deal.reference)
    expect(page.locator("main")).not_to_contain_text("reference")
    expect(page.locator("main")).not_to_contain_text(deal.reference)
    press(page, "I have paid")
    expect(page.locator(".step")).to_contain_text(deal.reference)
    assert not deal_of(desk, invoice).HasField("sender_name")


def test_the_code_in_euro_has_the_reference(desk: Desk) -> None:
    """EPC069-12: the reference is the unstructured remittance information."""
    iban = "DE02120300000000202051"
    for reference in (True, False):
        method = desk.method("EUR", takes_reference=reference)
        desk.requisite(method, account=iban)
        shop = desk.open_shop("EUR", allowed_methods=[method])
        invoice = shop.create()
        deal = desk.choose(invoice["invoice_id"], method)
        code = requests.get(f"{invoice['payment_link']}/qr.svg", timeout=HTTP_SECONDS)
        lines = ["BCD", "002", "1", "SCT", "", "Alex Tester", iban, f"EUR{deal.amount_fiat}"]
        assert code.content == svg_of("\n".join([*lines, "", "", deal.reference] if reference else lines))


def test_merchants_get_neither_the_reference_nor_the_name(desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    deal = desk.mark_paid(invoice["invoice_id"], method, sender_name="Eve Example")
    answer = shop.get(f"/api/v1/invoices/{invoice['invoice_id']}").text
    assert deal.reference not in answer
    assert "Eve" not in answer


# -- names that are none


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("  Eve \r\n Example ", "Eve Example"),
        ("\u202eevE\x00\x1b[31m", "evE[31m"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("x" * 500, "x" * 128),
        ("\u200b \u200f", None),
        ("", None),
    ],
)
def test_a_name_is_stored_as_one_line_without_marks(
    desk: Desk, shop: Shop, method: str, typed: str, stored: str | None
) -> None:
    invoice = shop.create()
    deal = desk.choose(invoice["invoice_id"], method)
    answer = requests.post(
        f"{invoice['payment_link']}/paid",
        data={"deal_id": deal.deal_id, "sender_name": typed},
        timeout=HTTP_SECONDS,
        allow_redirects=False,
    )
    assert (answer.status_code, "notice" in answer.headers["Location"]) == (303, False)
    marked = deal_of(desk, invoice)
    assert marked.HasField("mark_paid_at")
    assert (marked.sender_name if marked.HasField("sender_name") else None) == stored


def test_a_form_without_a_name_marks(desk: Desk, shop: Shop, method: str) -> None:
    invoice = shop.create()
    deal = desk.choose(invoice["invoice_id"], method)
    requests.post(
        f"{invoice['payment_link']}/paid", data={"deal_id": deal.deal_id}, timeout=HTTP_SECONDS
    ).raise_for_status()
    assert deal_of(desk, invoice).HasField("mark_paid_at")


# -- full methods


def test_a_full_method_is_greyed_out_with_a_time_and_nothing_else(
    page: Page, desk: Desk, shop: Shop, open_page: Open
) -> None:
    full = desk.method(shop.currency, name="One account", max_sum="99")
    desk.requisite(full)
    first = shop.create(amount="66.60")
    holder = desk.choose(first["invoice_id"], full)
    waiting = shop.create(amount="66.60")
    page.goto(waiting["payment_link"])
    button = page.get_by_role("button", name="One account")
    expect(button).to_be_disabled()
    expect(button).to_contain_text("All accounts are in use. A place may become free at")
    moment = button.locator("time").get_attribute("datetime")
    assert moment is not None
    assert moment[:19] == holder.expires_at.ToJsonString()[:19]
    expect(page.get_by_role("button", name="Card to card")).to_be_enabled()
    html = page.content()
    assert holder.deal_id not in html
    assert first["invoice_id"] not in html
    seen(page, "taken")
    desk.checkout.MarkPaid(pb.MarkPaidRequest(invoice_id=first["invoice_id"], deal_id=holder.deal_id))
    page.reload()
    expect(button).to_contain_text("All accounts are in use. Please try again later.")
    assert button.locator("time").count() == 0
    forced = requests.post(
        f"{waiting['payment_link']}/methods",
        data={"method_code": full},
        timeout=HTTP_SECONDS,
        allow_redirects=False,
    )
    assert re.search("notice=no_available_requisites", forced.headers["Location"])
    scripted = open_page()
    scripted.goto(waiting["payment_link"])
    expect(scripted.get_by_role("button", name="One account")).to_be_disabled()
    desk.deals.RejectDeal(pb.RejectDealRequest(deal_id=holder.deal_id))
    scripted.evaluate("document.dispatchEvent(new Event('fiatgate:look'))")
    expect(scripted.get_by_role("button", name="One account")).to_be_enabled()
