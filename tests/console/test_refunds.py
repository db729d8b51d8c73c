"""The queue of refunds at the desk: from ready to sent to done, or failed, or canceled."""

import re
from html import unescape
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from kit.base.money import amount_text
from tests.console.conftest import Open, Staff
from tests.console.house import House, Person, text_of
from tests.console.looks import looks_right
from tests.console.test_corrections import Shop
from tests.console.till import Till
from tests.gateway.desk import unique

IBAN: Final = "DE89 3704 0044 0532 0130 00"
ACCOUNT: Final = {"account_kind": "iban", "account": IBAN, "account_holder": "Mia Muster"}


@pytest.fixture(scope="module")
def shop(till: Till) -> Shop:
    """With more than one credit: a refund takes the commission too, which stays with the operator."""
    shop = Shop(till.desk, till.desk.open_shop(till.shop.currency), till.method)
    shop.credited()
    return shop


@pytest.fixture(scope="module")
def operator(staff: Staff) -> Person:
    return staff("desk")


def refund(shop: Shop, part: str = "", **paid: str) -> tuple[str, str]:
    """The page of a new refund that is ready, and the USDT that it holds."""
    invoice = shop.credited(**paid)
    path = f"/api/v1/invoices/{invoice}/refunds"
    made = shop.shop.post(path, json={"external_id": unique("refund"), "amount": part or None, **ACCOUNT})
    assert made.status_code == 201, made.text
    return f"/refunds/{made.json()['data']['refund_id']}", shop.balance().reserved


def test_a_refund_goes_from_the_queue_to_the_banks_reference(
    shop: Shop, operator: Person, staff: Staff, house: House
) -> None:
    path, held = refund(shop)
    queue = text_of(operator.get(f"/refunds?merchant={shop.shop.merchant_id}"))
    assert re.search(r"order \S*order-", queue), queue
    assert IBAN in text_of(operator.get(path)) and held in text_of(operator.get(path))
    assert "It is marked as sent." in text_of(operator.post(f"{path}/send"))
    stale = operator.post(f"{path}/cancel")
    assert (stale.status_code, "in another state by now" in text_of(stale)) == (422, True)
    listed = operator.get(f"/refunds?status=sent&merchant={shop.shop.merchant_id}")
    assert path in listed.text and re.search(r"sent \S+ \w+ ago", text_of(listed)), text_of(listed)
    assert "Refunds on their way" in text_of(operator.get("/"))
    without = operator.post(f"{path}/complete")
    assert (without.status_code, "Bank's reference" in text_of(without)) == (422, True)
    done = operator.post(f"{path}/complete", {"bank_reference": "BR-1"})
    assert "The customer has the money back." in text_of(done) and "BR-1" in text_of(done)
    assert "Sent" in text_of(done) and "were held" in text_of(done) and "To send" not in text_of(done)
    assert "Refund requested by API key" in text_of(done)
    member = house.person("owner", merchant=shop.shop.merchant_id)
    assert "Refund requested by API key" in text_of(member.get(path))
    audit = text_of(member.get("/audit"))
    assert "···3000" in audit and IBAN not in audit and IBAN.replace(" ", "") not in audit
    assert "API key requested refund" in audit
    assert shop.balance().reserved == "0.000000"
    assert operator.get("/find", params={"q": "BR-1"}).url == operator.url + path, "a single hit opens"
    other, _ = refund(shop)
    operator.post(f"{other}/send")
    taken = operator.post(f"{other}/complete", {"bank_reference": "br-1"})
    assert (taken.status_code, path.rpartition("/")[2] in text_of(taken)) == (422, True)
    operator.post(f"{other}/fail", {"failure": "A mistake"})
    (*_, line) = operator.rows(f"/refunds.csv?status=all&merchant={shop.shop.merchant_id}")
    assert (line["status"], line["bank_reference"]) == ("succeeded", "BR-1")
    assert 'action="/refunds/' not in staff("viewer").get(path).text


def test_a_refund_that_fails_or_is_canceled_gives_the_money_back(shop: Shop, operator: Person) -> None:
    for step, fields, sentence in (
        ("fail", {"failure": "The account is closed"}, "It is marked as failed."),
        ("cancel", {}, "The refund is canceled."),
    ):
        path, held = refund(shop)
        assert held != "0.000000"
        assert sentence in text_of(operator.post(f"{path}/{step}", fields))
        assert shop.balance().reserved == "0.000000"


def test_a_large_refund_is_sent_once_when_a_second_person_has_compared_it(
    shop: Shop, operator: Person, staff: Staff
) -> None:
    path, held = refund(shop, "90000.00", amount="95000.00")
    assert held == "1000.000000"
    fields = {"bank_reference": f"BR-{path}"}
    asked = operator.post(f"{path}/send", fields)
    assert (asked.status_code, "when another person approves it" in text_of(asked)) == (202, True)
    (request,) = set(re.findall(r'href="(/approvals/withdrawals/[0-9a-f-]{36})"', asked.text))
    assert "Being sent by" not in text_of(operator.get(path))
    own = operator.get(request)
    assert "You requested this" in text_of(own) and f'action="{request}/approve"' not in own.text
    assert "You requested this yourself" in text_of(operator.post(f"{request}/approve"))

    other = staff("admin")
    page = other.get(request)
    evidence = text_of(page)
    for each in ("90,000.00", IBAN, "Mia Muster", "1,000.000000", fields["bank_reference"]):
        assert each in evidence, evidence
    for each in ("Account", "The merchant’s money"):
        assert page.text.index(each) < page.text.index(f'action="{request}/approve"'), "first the evidence"
    balance = shop.balance()
    for amount in (balance.available, balance.reserved):
        assert amount_text(amount) in evidence.partition("The merchant’s money")[2], evidence
    assert "Approved and done." in text_of(other.post(f"{request}/approve"))
    assert "approved already" in text_of(staff("admin", "desk").post(f"{request}/approve"))
    history = text_of(other.get(path))
    assert history.count("Being sent by") == 1 and f"approved by {other.email}" in history
    assert 'name="bank_reference"' not in operator.get(path).text, "sending named it"
    assert "The customer has the money back." in text_of(operator.post(f"{path}/complete", fields))
    assert shop.balance().reserved == "0.000000"


def test_late_money_is_returned_from_its_case_to_an_account_that_the_operator_gives(
    shop: Shop, operator: Person, staff: Staff, house: House
) -> None:
    case = str(shop.late("Paid"))
    (link,) = set(re.findall(r'href="(/refunds/new[^"]+)"', operator.get(f"/cases/{case}").text))
    page = operator.get(unescape(link))
    invoice, key = (
        re.findall(rf'name="{name}" value="([^"]*)"', page.text)[0] for name in ("invoice", "request_key")
    )
    fields = {
        "invoice": invoice,
        "case": case,
        "request_key": key,
        "amount": "1 000,00",
        "reason": "Came late",
    }
    for wrong, field in (({"amount": "x"}, "Amount"), ({"amount": "0"}, "Amount"), ({"case": ""}, "Case")):
        refused = operator.post("/refunds/new", fields | wrong)
        assert (refused.status_code, field in text_of(refused)) == (422, True), text_of(refused)
    assert "The customer was told to send" in text_of(page)
    held = shop.balance()
    made = operator.post("/refunds/new", fields)
    assert "It stands in the queue." in text_of(made) and "came late, never credited" in text_of(made)
    assert operator.post("/refunds/new", fields).url == made.url, "once, however often it is sent"
    assert shop.balance() == held
    path = urlsplit(made.url).path
    member = house.person("finance", merchant=shop.shop.merchant_id)
    own = text_of(member.get(path))
    assert "This money was never yours" in own and "Your id" not in own
    assert "ago by the operator" in text_of(member.get("/"))
    bad = operator.post(f"{path}/account", {"account_kind": "iban", "account": "DE00", "holder": "Mia"})
    assert bad.status_code == 422
    given = operator.post(
        f"{path}/account", {"account_kind": "iban", "account": IBAN, "holder": "Mia Muster"}
    )
    assert IBAN in text_of(given) and "The account is given" in text_of(given)
    again = operator.post("/refunds/new", fields | {"request_key": str(uuid4())})
    assert (again.status_code, "returned already" in text_of(again)) == (422, True), text_of(again)
    assert staff("viewer").get(unescape(link)).status_code == 403


def test_what_goes_back_is_not_offered_again(shop: Shop, staff: Staff, house: House) -> None:
    shop.credited()  # pays the commission of the whole refund
    invoice, admin = shop.credited(), staff("admin")
    member = house.person("owner", merchant=shop.shop.merchant_id)
    (deal,) = set(re.findall(r'href="(/deals/[0-9a-f-]{36})"', admin.get(f"/invoices/{invoice}").text))

    def offered() -> set[str]:
        pages = (admin.get(deal).text, member.get(f"/invoices/{invoice}").text)
        button = r'class="button[^>]*>(Take back|More came|Return a surplus|Refund)</a>'
        at_desk, own = (set(re.findall(button, page)) for page in pages)
        assert own <= {"Refund"}, "what was never credited the operator returns"
        return at_desk | own

    assert offered() == {"Take back", "More came", "Return a surplus", "Refund"}
    fields = {"invoice": invoice, "request_key": str(uuid4()), "amount": "5"}
    surplus = urlsplit(admin.post("/refunds/new", fields).url).path
    assert offered() == {"Take back", "Refund"}
    path = f"/api/v1/invoices/{invoice}/refunds"
    assert shop.shop.post(path, json={"external_id": unique("refund"), **ACCOUNT}).status_code == 201
    assert offered() == set()
    admin.post(f"{surplus}/cancel")
    assert offered() == {"More came", "Return a surplus"}


def test_pages_of_refunds_look_right(shop: Shop, staff: Staff, open_page: Open) -> None:
    path, _ = refund(shop)
    page = staff.page(open_page, "desk", viewport={"width": 1440, "height": 900})
    beyond = f"/refunds/new?invoice={shop.credited()}"
    for name, address in {"refunds": "/refunds", "refund": path, "refund-new": beyond}.items():
        page.goto(staff("desk").url + address)
        looks_right(page, name)
