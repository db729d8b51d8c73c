"""Refunds by members: a paid invoice, the form, the account, the end; and what Home, search and statement say of it."""

import re
from typing import Final

from playwright.sync_api import expect

from fiatgate.withdrawals.v1 import corrections_pb2, refunds_pb2
from kit.base.ids import new_id
from kit.base.money import amount_text
from tests.cli.test_verify import behind_its_back
from tests.console.conftest import Open, Staff, with_cookies
from tests.console.house import House, hidden, text_of
from tests.console.looks import looks_right
from tests.console.till import Till
from tests.gateway.desk import settled
from tests.support.acting import second_person

IBAN: Final = {"account_kind": "iban", "account": "DE89370400440532013000", "holder": "Ada Lovelace"}


def test_a_member_refunds_a_paid_invoice_and_cancels_it(
    till: Till, house: House, staff: Staff, open_page: Open
) -> None:
    shop = till.desk.open_shop(till.shop.currency)
    own = Till(till.desk, shop, till.method)
    invoice = own.paid().invoice_id
    settled(lambda: own.desk.available(shop) != "0.000000", "the credit")
    available = own.desk.available(shop)
    finance = house.person("finance", merchant=shop.merchant_id)
    viewer = house.person("viewer", merchant=shop.merchant_id)
    assert "/refunds/new" not in viewer.get(f"/invoices/{invoice}").text

    browser = with_cookies(open_page(), finance)
    browser.goto(f"{house.dashboard}/invoices/{invoice}")
    browser.get_by_role("link", name="Refund", exact=True).click()
    looks_right(browser, "dashboard-refund-new")
    browser.get_by_label("I give it here").check()
    browser.get_by_label("Kind of account").select_option("iban")
    browser.get_by_label("Account", exact=True).fill("DE00")
    browser.get_by_label("Holder").fill(IBAN["holder"])
    browser.get_by_label("Amount in").fill("900000")
    browser.get_by_label("Reason").fill("Lamp broken")
    browser.get_by_role("button", name="Look at it").click()
    expect(browser.get_by_text("this is no IBAN").first).to_be_visible()
    browser.get_by_label("Account", exact=True).fill(IBAN["account"])
    browser.get_by_role("button", name="Look at it").click()
    expect(browser.get_by_role("alert").first).to_contain_text("of this invoice can still be refunded")
    browser.get_by_label("Amount in").fill("90")
    browser.get_by_role("button", name="Look at it").click()
    expect(browser.get_by_text("Held for it")).to_be_visible()
    looks_right(browser, "dashboard-refund-agree")
    browser.get_by_role("button", name="Request the refund").click()
    expect(browser.get_by_text("The refund is requested")).to_be_visible()
    looks_right(browser, "dashboard-refund")
    path = browser.url.removeprefix(house.dashboard).partition("?")[0]
    page = text_of(finance.get(path))
    assert "ready" in page and "Lamp broken" in page and IBAN["account"] not in page
    held = own.desk.available(shop)
    assert held != available
    external = finance.rows("/refunds.csv")[0]["external_id"]
    assert finance.get("/find", params={"q": external}, allow_redirects=False).headers["Location"] == path
    assert path in finance.get(f"/invoices/{invoice}").text and path in finance.get("/balance").text
    browser.goto(f"{house.dashboard}/refunds")
    expect(browser.get_by_role("main")).to_contain_text("order-")
    looks_right(browser, "dashboard-refunds")
    browser.goto(f"{house.dashboard}{path}")
    browser.get_by_text("Cancel it").click()
    browser.get_by_role("button", name="Cancel the refund").click()
    expect(browser.get_by_text("It holds nothing of the balance any more.")).to_be_visible()
    expect(browser.get_by_text("Your customer does not get")).to_be_visible()
    assert own.desk.available(shop) == available
    statement = text_of(finance.get("/balance"))
    assert "Held for a refund" in statement and "Refund failed or canceled" in statement
    of_desk = f"/merchants/{shop.merchant_id}/statement"
    for person, address in ((finance, "/balance"), (staff("treasury"), of_desk)):
        lines = [
            each for each in person.rows(f"{address}.csv") if each["refund_id"] in path and each["refund_id"]
        ]
        assert [each["kind"] for each in lines] == ["refund_reserve", "refund_release"]
        for each in lines:
            assert (each["invoice_id"], each["reason"]) == (invoice, "Lamp broken")
            for shown in (person.get(address), person.get(f"{address}/print")):
                # The order stands at its credit and at both lines of the refund, the reason at these.
                counted = (text_of(shown).count(text) for text in (each["external_id"], "Lamp broken"))
                assert tuple(counted) == (3, 2), text_of(shown)


def test_the_customer_may_give_the_account_and_the_form_makes_one_refund(till: Till, house: House) -> None:
    shop = till.desk.open_shop(till.shop.currency)
    own = Till(till.desk, shop, till.method)
    invoice, unpaid = own.paid().invoice_id, own.chosen().invoice_id
    settled(lambda: own.desk.available(shop) != "0.000000", "the credit")
    finance = house.person("finance", merchant=shop.merchant_id)
    assert "Only a paid invoice can be refunded" in text_of(finance.get(f"/refunds/new?invoice={unpaid}"))
    asked = finance.get(f"/refunds/new?invoice={invoice}")
    form = hidden(asked.text, "/refunds/new")
    all_of_it = finance.post("/refunds/new", form | {"account_from": "customer"})
    for page in (asked, all_of_it):  # the one credit is less than what the customer paid
        assert re.search(r"enough for \S+\s\w+ now. The commission stays", text_of(page)), text_of(page)
    assert all_of_it.status_code == 422
    seen = finance.post("/refunds/new", form | {"account_from": "customer", "amount": "100"})
    assert "the account that the customer gives on the payment page" in text_of(seen), text_of(seen)
    agreed = hidden(seen.text, "/refunds/new")
    places = {
        finance.post("/refunds/new", agreed, allow_redirects=False).headers["Location"] for _ in range(2)
    }
    assert len(places) == 1, "a double click"
    other = finance.post("/refunds/new", agreed | {"reason": "Another one"})
    assert "This form has made a refund already" in text_of(other)
    changed = finance.post("/refunds/new", agreed | {"expected": "1", "request_key": invoice})
    assert "nothing was requested" in text_of(changed), text_of(changed)
    path = places.pop().partition("?")[0]
    waiting = finance.get(path).text
    assert f"/pay/{invoice}" in waiting
    home = text_of(finance.get("/"))
    assert "Refunds that wait for an account" in home and "of your balance" in home
    assert "cancel it" not in home
    with behind_its_back(till.desk.stack, "withdrawals") as database:
        database.execute(
            "UPDATE refunds SET updated_at = now() - interval '15 days' WHERE id = %s",
            (path.rpartition("/")[2],),
        )
    assert "If your customer does not answer, cancel it" in text_of(finance.get("/"))
    wrong = finance.post(f"{path}/account", IBAN | {"account": "DE00"})
    assert (wrong.status_code, "this is no IBAN" in text_of(wrong)) == (422, True)
    given = text_of(finance.post(f"{path}/account", IBAN))
    assert "The account is given" in given and "ready" in given
    assert "Refunds that wait for an account" not in text_of(finance.get("/"))
    late = finance.post(f"{path}/account", IBAN | {"holder": "Another"})
    assert "in another state by now" in text_of(late)
    (line,) = finance.rows("/refunds.csv?status=ready")
    assert re.search(rf"{amount_text(line['amount'])}", given)
    calls, id = till.desk.refunds, path.rpartition("/")[2]
    calls.SendRefund(refunds_pb2.SendRefundRequest(refund_id=id, bank_reference=id))
    calls.FailRefund(refunds_pb2.FailRefundRequest(refund_id=id, failure="The account is closed"))
    home = text_of(finance.get("/"))
    assert re.search(r"Refunds that failed: .*100\.00 \S+ of order \S+ : The account is closed", home), home


def test_an_invoice_whose_credit_was_taken_back_in_part_says_that_it_is_not_refunded(
    till: Till, house: House
) -> None:
    shop = till.desk.open_shop(till.shop.currency)
    own = Till(till.desk, shop, till.method)
    invoice = own.paid().invoice_id
    settled(lambda: own.desk.available(shop) != "0.000000", "the credit")
    request = corrections_pb2.MakeCorrectionRequest(
        kind=corrections_pb2.CORRECTION_KIND_REVERSAL,
        invoice_id=invoice,
        amount="1",
        reason="Recalled",
        evidence="BR-7",
        request_key=str(new_id()),
    )
    with second_person(till.desk.stack.addresses["withdrawals"]) as by_two:
        by_two(lambda: till.desk.corrections.MakeCorrection(request))
    page = house.person("finance", merchant=shop.merchant_id).get(f"/refunds/new?invoice={invoice}")
    assert "was taken back, in whole or in part, so it can't be refunded" in text_of(page)
