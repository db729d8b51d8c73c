"""The queue of refunds at the desk: from ready to sent to done, or failed, or canceled."""

from typing import Final

import pytest

from tests.console.conftest import Open, Staff
from tests.console.house import Person, text_of
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


def refund(shop: Shop) -> tuple[str, str]:
    """The page of a new refund that is ready, and the USDT that it holds."""
    path = f"/api/v1/invoices/{shop.credited()}/refunds"
    made = shop.shop.post(path, json={"external_id": unique("refund"), **ACCOUNT})
    assert made.status_code == 201, made.text
    return f"/refunds/{made.json()['data']['refund_id']}", shop.balance().reserved


def test_a_refund_goes_from_the_queue_to_the_banks_reference(
    shop: Shop, operator: Person, staff: Staff
) -> None:
    path, held = refund(shop)
    assert path in operator.get(f"/refunds?merchant={shop.shop.merchant_id}").text
    assert IBAN in text_of(operator.get(path)) and held in text_of(operator.get(path))
    assert "It is marked as sent." in text_of(operator.post(f"{path}/send"))
    stale = operator.post(f"{path}/cancel")
    assert (stale.status_code, "in another state by now" in text_of(stale)) == (422, True)
    assert path in operator.get(f"/refunds?status=sent&merchant={shop.shop.merchant_id}").text
    without = operator.post(f"{path}/complete")
    assert (without.status_code, "Bank's reference" in text_of(without)) == (422, True)
    done = operator.post(f"{path}/complete", {"bank_reference": "BR-1"})
    assert "The customer has the money back." in text_of(done) and "BR-1" in text_of(done)
    assert shop.balance().reserved == "0.000000"
    (line,) = operator.rows(f"/refunds.csv?status=all&merchant={shop.shop.merchant_id}")
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


def test_pages_of_refunds_look_right(shop: Shop, staff: Staff, open_page: Open) -> None:
    path, _ = refund(shop)
    page = staff.page(open_page, "desk", viewport={"width": 1440, "height": 900})
    for name, address in {"refunds": "/refunds", "refund": path}.items():
        page.goto(staff("desk").url + address)
        looks_right(page, name)
