"""Invoices at the desk: the list and its file, the timeline of one, the search, the cancellation, the switch."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import requests

from console.finding.pages import path_of
from deploy.local.waiting import wait_until
from fiatgate.find.v1 import find_pb2
from fiatgate.invoices.v1 import invoices_pb2
from tests.console.conftest import Open, Staff
from tests.console.house import House, Person, text_of, title_of, titles
from tests.console.looks import looks_right
from tests.console.second import second_console
from tests.gateway.desk import HTTP_SECONDS, SETTLE_SECONDS, Desk, Shop, unique
from tests.support.receiver import Receiver
from tests.support.stack import Stack


@pytest.fixture(scope="module")
def desk(stack: Stack) -> Iterator[Desk]:
    with Desk(stack) as opened:
        yield opened


@pytest.fixture(scope="module")
def currency(desk: Desk) -> str:
    return desk.currency()


@pytest.fixture(scope="module")
def method(desk: Desk, currency: str) -> str:
    code = desk.method(currency, name="Bank transfer")
    desk.requisite(code, account="4000 0025 0000 3155")
    return code


@pytest.fixture(scope="module")
def shop(desk: Desk, currency: str, method: str) -> Shop:
    return desk.open_shop(currency, name="Timeline lamps")


def search(person: Person, text: str) -> Any:
    return person.get("/find", params={"q": text}, allow_redirects=False)


def test_an_invoice_has_one_timeline_from_all_services(
    house: House, staff: Staff, desk: Desk, shop: Shop, method: str, receiver: Receiver, open_page: Open
) -> None:
    kept = {"<i>basket": "<b>7</b>"}
    created = shop.create(callback_url=receiver.url(), purpose="Two <b>lamps</b>", metadata=kept)
    id, sender = created["invoice_id"], unique("Payer")
    operator = staff("desk")
    assert requests.get(created["payment_link"], timeout=HTTP_SECONDS).status_code == 200
    deal = desk.mark_paid(id, method, sender_name=sender)
    desk.deals.ConfirmDeal(invoices_pb2.ConfirmDealRequest(deal_id=deal.deal_id))
    receiver.wait_for(1)
    page = f"/invoices/{id}"
    wait_until(
        lambda: (
            {"Credited to the merchant", "Webhook attempt 1 delivered"} <= {*titles(operator.get(page).text)}
        ),
        "the credit and the webhook in the timeline",
        timeout_seconds=SETTLE_SECONDS,
    )
    answer = operator.get(page)
    assert titles(answer.text)[:6] == [
        "Invoice created",
        "Payment page opened for the first time",
        "Payment method chosen",
        "Marked paid",
        "Payment confirmed",
        "Invoice paid",
    ]
    text = text_of(answer)
    assert "by API key test (" in text
    assert "Two <b>lamps</b>" in text and "<i>basket <b>7</b>" in text
    assert "rate 90.00" in text
    assert "rate from an operator, 90, taken " in text
    assert "4000 0025 0000 3155" in text
    assert f"sender {sender}" in text
    assert "answer HTTP 200" in text
    assert "balance after it" in text

    lines = list(csv.reader(io.StringIO(operator.get(f"{page}/timeline.csv").text)))
    assert lines[0] == ["at", "service", "title", "by", "details", "note", "thing"]
    assert [line[2] for line in lines[1:]] == titles(answer.text)
    of_sender = search(operator, sender)
    assert deal.deal_id in of_sender.headers.get("Location", "") + of_sender.text
    assert search(operator, created["external_id"]).headers["Location"] == page
    assert search(operator, id[:13]).headers["Location"] == page

    assert {shop.create(amount="666.66")["amount"] for _ in range(2)} == {"666.66"}
    browser = staff.page(open_page, "desk")
    browser.goto(f"{house.desk}{page}")
    looks_right(browser, "invoice")
    for name, address in (
        ("invoices", f"/invoices?merchant={shop.merchant_id}"),
        ("find", "/find?q=666.66"),
        ("deals-system", "/deals-system"),
    ):
        browser.goto(house.desk + address)
        looks_right(browser, name)


def test_invoices_are_listed_by_each_filter_and_all_of_them_are_in_the_file(
    staff: Staff, desk: Desk, shop: Shop, method: str
) -> None:
    operator = staff("desk")
    waiting, chosen = shop.create(customer_id=unique("zoe")), shop.create(amount="777.77")
    desk.choose(chosen["invoice_id"], method)

    def listed(**filters: str) -> list[str]:
        page = operator.get("/invoices", params={"merchant": shop.merchant_id} | filters)
        return re.findall(r'<th scope="row">.*?href="/invoices/([0-9a-f-]{36})"', page.text)

    assert listed(order=chosen["external_id"]) == [chosen["invoice_id"]]
    assert listed(customer=waiting["customer_id"]) == [waiting["invoice_id"]]
    assert listed(amount_from="777.77", amount_to="777.77") == [chosen["invoice_id"]]
    assert listed(method=method, status="pending") == [chosen["invoice_id"]]
    assert listed(currency=shop.currency)[:2] == [chosen["invoice_id"], waiting["invoice_id"]]
    assert listed(status="fail") == []
    assert listed(until="2020-01-01") == []
    lines = operator.rows("/invoices.csv", merchant=shop.merchant_id)
    assert [line["invoice_id"] for line in lines[:2]] == [chosen["invoice_id"], waiting["invoice_id"]]
    assert lines[0]["merchant"] == "Timeline lamps"
    refused = operator.get("/invoices", params={"amount_from": "much"})
    assert (refused.status_code, "as 49.90" in refused.text) == (422, True)


def test_the_search_names_what_it_found_and_says_when_nothing_fits(
    staff: Staff, desk: Desk, shop: Shop, method: str
) -> None:
    viewer = staff("viewer")
    created = [
        shop.create(customer_id=unique("one")),
        shop.create(amount="888.88"),
        shop.create(amount="888.88"),
    ]
    several = search(viewer, "888.88")
    assert several.status_code == 200
    assert all(each["invoice_id"] in several.text for each in created[1:])
    assert "Nothing has this text." in search(viewer, unique("nothing")).text
    assert title_of(viewer.get("/find")) == "Search"
    # An invoice and its own deal are one thing.
    desk.choose(created[0]["invoice_id"], method)
    assert (
        search(viewer, created[0]["customer_id"]).headers["Location"]
        == f"/invoices/{created[0]['invoice_id']}"
    )
    # People are found by those who may read them, and the others' search does not even try.
    admin = staff("admin")
    assert search(admin, viewer.email).headers["Location"].startswith("/people/")
    assert "Nothing has this text." in search(viewer, viewer.email).text
    # A merchant's name leads to a page that this person may open, else to the list.
    assert "Timeline lamps" in viewer.get("/find", params={"q": "Timeline lam"}).text


@pytest.mark.parametrize(
    ("kind", "facts", "path"),
    [
        ("key", {"merchant_id": "m"}, "/merchants/m"),
        ("key", {}, ""),  # a service that leaves out a fact breaks no search
        ("planet", {}, ""),
        ("approval", {}, "/approvals/catalog/1"),
    ],
)
def test_a_thing_that_was_found_has_a_link_when_it_has_a_page(
    kind: str, facts: dict[str, str], path: str
) -> None:
    assert path_of(find_pb2.Found(kind=kind, id="1", facts=facts), "catalog") == path


def test_an_invoice_is_canceled_after_one_question_and_not_twice(
    house: House, staff: Staff, desk: Desk, shop: Shop, method: str
) -> None:
    operator, viewer = staff("desk"), staff("viewer")
    id = shop.create()["invoice_id"]
    assert "Cancel the invoice" in operator.get(f"/invoices/{id}").text
    assert "Cancel the invoice" not in viewer.get(f"/invoices/{id}").text
    done = operator.post(f"/invoices/{id}/cancel")
    assert "The invoice is canceled." in done.text
    assert titles(done.text)[:2] == ["Invoice created", "Invoice canceled"]
    assert f"Invoice canceled by {operator.email}" in text_of(done)
    assert "Cancel the invoice" not in done.text
    paid = shop.create()["invoice_id"]
    desk.mark_paid(paid, method)
    assert "Decide about the deal instead." in operator.post(f"/invoices/{paid}/cancel").text
    assert operator.get("/invoices/0197a000-0000-7000-8000-000000000000").status_code == 404


def test_new_deals_are_switched_off_and_on_with_their_author(staff: Staff, shop: Shop) -> None:
    operator, viewer = staff("desk"), staff("viewer")
    try:
        for unclear in ({}, {"enabled": "on"}):
            assert operator.post("/deals-system", unclear).status_code == 400
        off = operator.post("/deals-system", {"enabled": "no"})
        assert "New invoices and new deals are refused." in off.text
        assert operator.email in off.text
        refused = shop.post("/api/v1/create-invoice", json=shop.body())
        assert refused.json()["error"]["code"] == "DEALS_SYSTEM_DISABLED"
        assert "Switch on" not in viewer.get("/deals-system").text
    finally:
        on = operator.post("/deals-system", {"enabled": "yes"})
    assert "New invoices and new deals are accepted again." in on.text
    assert shop.post("/api/v1/create-invoice", json=shop.body()).status_code == 201


def test_texts_of_a_merchant_make_no_line_no_fact_and_no_direction_of_ours(staff: Staff, shop: Shop) -> None:
    order = f"\u2069\u202eA-17; amount 9999.00 EUR {uuid4()}"
    created = shop.create(external_id=order, purpose="x\n2026-11-22T00:00:00Z,invoices,Payment confirmed,op")
    operator, path = staff("desk"), f"/invoices/{created['invoice_id']}"
    file = operator.get(f"{path}/timeline.csv").text
    assert len(file.splitlines()) == 2, file
    (line,) = csv.DictReader(io.StringIO(file))
    assert f'order "\\u2069\\u202e{order[2:]}"' in line["details"]
    assert r"purpose x\n2026" in line["details"]
    page = operator.get(path).text
    assert "<bdi>\\u2069\\u202eA-17" in page


def test_a_service_that_is_away_is_named_and_the_rest_is_shown(
    house: House, staff: Staff, shop: Shop, tmp_path: Path
) -> None:
    created, operator = shop.create(), staff("desk")
    with second_console("desk", house, tmp_path / "log", FIATGATE_WEBHOOKS_ADDRESS="127.0.0.1:1") as url:
        there = Person(url, operator.email, http=operator.http)
        page = there.get(f"/invoices/{created['invoice_id']}")
        assert "webhooks does not answer: its part of the timeline is missing here." in text_of(page)
        assert titles(page.text) == ["Invoice created"]
        timeline = f"/invoices/{created['invoice_id']}/timeline.csv"
        assert there.get(timeline).status_code == 503
        found = search(there, created["external_id"])
        assert "webhooks does not answer, so its things are missing here." in text_of(found)
        assert created["invoice_id"] in found.text
