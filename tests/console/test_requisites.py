"""Requisites at the desk: load, several at once, a pasted list that is added whole or not at all, and history."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

import pytest
from playwright.sync_api import expect

from fiatgate.invoices.v1 import invoices_pb2 as pb
from tests.console.conftest import Open, Staff
from tests.console.house import House, Person, hidden, text_of, title_of
from tests.console.looks import looks_right
from tests.gateway.desk import Desk, Shop, settled
from tests.support.stack import Stack


@dataclass(frozen=True)
class Till:
    desk: Desk
    shop: Shop
    method: str
    first: str
    second: str

    @property
    def path(self) -> str:
        return f"/requisites?method={self.method}"

    def listed(self) -> dict[str, pb.Requisite]:
        request = pb.ListRequisitesRequest(method_code=self.method)
        return {each.account: each for each in self.desk.deals.ListRequisites(request).requisites}


@pytest.fixture(scope="module")
def till(stack: Stack) -> Iterator[Till]:
    with Desk(stack) as desk:
        currency = desk.currency()
        method = desk.method(currency)
        first = desk.requisite(method, account="first account")
        second = desk.requisite(method, account="second account")
        yield Till(desk, desk.open_shop(currency), method, first, second)


@pytest.fixture(scope="module")
def operator(staff: Staff) -> Person:
    return staff("desk")


def test_a_list_shows_load_and_the_deals_of_today_and_the_account_its_days_and_deals(
    till: Till, staff: Staff, operator: Person, open_page: Open
) -> None:
    paid = till.shop.create(amount="1234.50")["invoice_id"]
    till.desk.confirm(paid, till.method)
    open_deal = till.desk.mark_paid(till.shop.create()["invoice_id"], till.method, sender_name="A <b>Sender")
    page = staff.page(open_page, "desk")
    page.goto(operator.url + till.path)
    rows = page.locator("[data-row]")
    expect(rows).to_have_count(2)
    expect(page.locator("table")).to_contain_text("1 of 10000")
    looks_right(page, "requisites")
    box = rows.first.get_by_role("checkbox")
    box.check()
    box.press("Enter")  # this must not press the first button, which stands behind a question
    expect(box).to_be_checked()
    assert all(each.enabled for each in till.listed().values())
    page.goto(f"{operator.url}/requisites/{open_deal.requisite_id}")
    expect(page.locator("table").last).to_contain_text("A <b>Sender")
    expect(page.locator(".timeline")).to_contain_text("Added")
    looks_right(page, "requisite")

    def is_counted() -> bool:  # the service counts every three seconds
        today = operator.rows(f"/requisites.csv?method={till.method}")
        return sum(int(row["completed_today"]) for row in today) >= 1

    settled(is_counted, "the deal to be counted")
    deals = [
        row
        for id in (till.first, till.second)
        for row in operator.rows(f"/requisites/{id}.csv?status=completed")
    ]
    assert [row["invoice_id"] for row in deals] == [paid]
    reject = pb.RejectDealRequest(deal_id=open_deal.deal_id)
    till.desk.deals.RejectDeal(reject)


def test_several_are_disabled_and_enabled_at_once_also_past_the_question_for_a_second_factor(
    till: Till, house: House, operator: Person
) -> None:
    ticked = {f"requisite:{till.first}": "on", f"requisite:{till.second}": "on", "to": till.path}
    done = operator.post("/requisites/disable", ticked)
    assert done.url.endswith(f"{till.path}&notice=requisites-disabled")
    assert not any(each.enabled for each in till.listed().values())
    assert "No place: customers see" in done.text
    assert f"/requisites?method={till.method}" in operator.get("/").text, "Now names the method"

    house.database("UPDATE sessions SET stepped_up_at = now() - interval '1 hour' WHERE ended_at IS NULL")
    asked = operator.post("/requisites/enable", ticked)
    carried = hidden(asked.text, "/step-up?to=/requisites/enable")
    assert {name for name in carried if name.startswith("requisite:")} == set(ticked) - {"to"}
    house.step_up(operator)
    assert "Enabled: new deals are opened there again." in operator.post("/requisites/enable", carried).text
    assert all(each.enabled for each in till.listed().values())
    assert "Nothing was chosen" in operator.post("/requisites/disable", {"to": till.path}).text

    first = {f"requisite:{till.first}": "on", "to": till.path}
    operator.post("/requisites/disable", first)
    twin = {f"requisite:{till.desk.requisite(till.method, account='first account')}": "on", "to": till.path}
    assert "of the method has the same account" in operator.post("/requisites/enable", first).text
    operator.post("/requisites/disable", twin)
    assert "Enabled: new deals are opened there again." in operator.post("/requisites/enable", first).text


def test_a_whole_page_of_accounts_is_switched_and_one_that_is_not_there_is_named(
    till: Till, operator: Person
) -> None:
    method = till.desk.method(till.desk.currency())
    given = [pb.NewRequisite(account=f"account {number}", holder="H") for number in range(50)]
    added = till.desk.deals.AddRequisites(pb.AddRequisitesRequest(method_code=method, requisites=given))
    ids = [each.requisite_id for each in added.requisites]
    unknown = str(uuid4())
    ticked = {f"requisite:{each}": "a <b>old account" for each in (*ids, unknown)}
    done = operator.post("/requisites/disable", ticked | {"to": f"/requisites?method={method}"})
    assert title_of(done) == "50 of 51 done"
    assert re.search(rf"{unknown}.*a &lt;b&gt;old account.*not done", done.text, re.DOTALL)
    request = pb.ListRequisitesRequest(method_code=method, enabled=True)
    assert not till.desk.deals.ListRequisites(request).requisites


def test_a_pasted_list_is_checked_line_by_line_and_added_whole_or_not_at_all(
    till: Till, staff: Staff, operator: Person, open_page: Open
) -> None:
    pasted = (
        "account;holder;bank;max_deals\n"
        "new 1;Ann Holder;First Bank;5\n"
        "new-1;Ben Holder;;\n"
        "first account;Cid;;many\n;;;\n"
    )
    before = till.listed()
    page = staff.page(open_page, "desk")
    page.goto(f"{operator.url}/new-requisites?method={till.method}")
    page.get_by_label("Accounts").fill(pasted)
    page.get_by_role("button", name="Check the list").click()
    expect(page.get_by_role("alert")).to_contain_text("2 of 3 lines are wrong. Nothing was added")
    expect(page.locator("[data-row]").nth(1)).to_contain_text("This account stands above already")
    expect(page.locator("[data-row]").nth(2)).to_contain_text("max deals")
    looks_right(page, "requisites-new")
    refused = operator.post("/new-requisites/add", {"method_code": till.method, "list": pasted})
    assert "2 of 3 lines are wrong" in refused.text
    assert till.listed() == before

    page.get_by_label("Accounts").fill("new 1\tAnn Holder\tFirst Bank\t5\n'+49 30 1234567\tBen Holder")
    page.get_by_role("button", name="Check the list").click()
    page.get_by_role("button", name="Add these 2 accounts").click()
    expect(page.get_by_role("status")).to_contain_text("The accounts are added.")
    added = {account: each for account, each in till.listed().items() if account not in before}
    assert {(each.account, each.holder, each.bank, each.max_deals) for each in added.values()} == {
        ("new 1", "Ann Holder", "First Bank", 5),
        ("+49 30 1234567", "Ben Holder", "", 100),
    }
    again = operator.post("/new-requisites", {"method_code": till.method, "list": "new 1,Ann"})
    assert "The method has this account already" in again.text
    for text in ("", '"open'):
        wrong = operator.post("/new-requisites", {"method_code": till.method, "list": text})
        assert (wrong.status_code, 'id="list-error"' in wrong.text) == (422, True)
    long = "\n".join(f"account {number:0120};Ann" for number in range(199))
    for path in ("/new-requisites", "/new-requisites/add"):
        cut = operator.post(path, {"method_code": till.method, "list": long})
        assert cut.status_code == 422
        assert "it has 26,466 characters, of at most 24,576: add it in parts." in cut.text
        assert f"account {198:0120};Ann</textarea>" in cut.text, "the list is still whole"


def test_an_account_is_added_and_typed_text_survives_a_refusal(till: Till, operator: Person) -> None:
    fields = {
        "method_code": till.method,
        "account": "third account",
        "holder": "",
        "bank": "B",
        "max_deals": "7",
    }
    wrong = operator.post("/new-requisite", fields | {"max_deals": "0x7"})
    assert (wrong.status_code, 'value="third account"' in wrong.text) == (422, True)
    assert "Holder has 1 to 128 characters. Most open deals: expected 1 to 10000." in text_of(wrong)
    done = operator.post("/new-requisite", fields | {"holder": "H"})
    assert "The account is added." in done.text
    assert till.listed()["third account"].max_deals == 7
    twice = operator.post("/new-requisite", fields | {"account": "third-account", "holder": "Other"})
    assert (twice.status_code, 'id="account-error"' in twice.text) == (422, True)
    assert "third-account" not in till.listed()


def test_accounts_are_found_by_a_part_of_their_text(till: Till, operator: Person) -> None:
    page = operator.get(f"{till.path}&text=second+ACC")
    assert ("second account" in page.text, "first account" in page.text) == (True, False)
