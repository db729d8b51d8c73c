"""A working day at the desk in browsers: from the first transfer to the sum of the month."""

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.sync_api import Page, expect

from fiatgate.catalog.v1 import catalog_pb2
from fiatgate.invoices.v1 import invoices_pb2 as pb
from tests.console.conftest import Open, Staff
from tests.console.house import House
from tests.console.looks import looks_right
from tests.console.till import Till
from tests.gateway.desk import settled
from tests.support.pictures import PNG

KEYS_PER_DEAL: Final = 3
TRON_ADDRESS: Final = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8"
HELD: Final = (
    '{"quotes": [{"source": "acme", "rate": "60", "error": ""},'
    ' {"source": "b", "rate": null, "error": "no answer"}]}'
)


@dataclass(frozen=True)
class At:
    """`at("desk")("/deals")`: a browser in which an operator with these roles has opened a page."""

    house: House
    staff: Staff
    open_page: Open

    def __call__(self, *roles: str) -> Callable[[str], Page]:
        page = self.staff.page(self.open_page, *roles)

        def opened(path: str) -> Page:
            page.goto(self.house.desk + path)
            return page

        return opened


@pytest.fixture
def at(house: House, staff: Staff, open_page: Open) -> At:
    return At(house, staff, open_page)


@pytest.fixture(autouse=True)
def _nothing_waits(till: Till) -> Iterator[None]:
    yield
    till.clear()


def approved(requester: Page, second: Callable[[str], Page], summary: str) -> Page:
    """The request that the page names, after another person read the summary and approved it."""
    link = requester.get_by_role("link", name=re.compile("^(The|See the) request$")).first
    page = second(link.get_attribute("href") or "")
    expect(page.locator(".statement")).to_contain_text(summary)
    page.keyboard.press("a")
    expect(page.get_by_label("Your words")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Approved and done.")
    return page


# -- transfers


def test_ten_transfers_are_confirmed_and_one_rejected_with_three_keys_each_at_most(
    till: Till, at: At
) -> None:
    deals = [till.marked(sender=f"Sender {number}") for number in range(12)]
    page = at("desk")(till.list())
    looks_right(page, "deals")
    keys = 0
    decisions = "ccrcccaccccc"
    for deal, key in zip(deals, decisions, strict=True):
        expect(page.locator(".evidence")).to_have_attribute("data-evidence", deal.deal_id)
        for each in (key, "Enter"):
            page.keyboard.press(each)
            keys += 1
        expect(page.locator(f"[data-evidence='{deal.deal_id}']")).to_have_count(0)
    assert keys <= KEYS_PER_DEAL * len(deals)
    expect(page.locator("[data-row]")).to_have_count(0)
    ends = {"c": "successfully_paid", "r": "rejected_by_operator", "a": "opened_by_operator"}
    assert [till.state(deal) for deal in deals] == [ends[key] for key in decisions]


def test_an_appeal_with_a_picture_ends_with_the_amount_that_a_second_person_approves(
    till: Till, at: At
) -> None:
    deal = till.appealed(picture=PNG, amount="940.20")
    page = at("desk")(till.list("appeals"))
    expect(page.locator(".evidence")).to_contain_text("Paid <b>at</b> noon")
    assert page.locator("figure img").evaluate("each => each.decode().then(() => each.naturalWidth)") > 0
    html = page.content()
    assert html.index("<figure>") < html.index('class="decide"'), "the picture is seen before the decision"
    page.keyboard.press("a")
    came = page.get_by_label("Amount that came, by the bank statement")
    expect(came).to_be_focused()
    page.keyboard.type(deal.amount_fiat)
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text(
        f"{deal.amount_fiat} is not an underpayment: the amount must be above zero and below {deal.amount_fiat}."
    )
    expect(came).to_have_value(deal.amount_fiat)
    came.fill(deal.invoice_amount.replace(".", ","))
    page.keyboard.press("Enter")
    counted = till.desk.deals.CheckAdjustment(
        pb.CheckAdjustmentRequest(deal_id=deal.deal_id, received_amount=deal.invoice_amount)
    )
    question = page.locator(".confirm[open]")
    expect(question).to_contain_text(f"of {deal.amount_fiat} came. It counts as {counted.adjusted_amount}")
    expect(question).to_contain_text(f"the merchant gets {counted.merchant_usdt}")
    looks_right(page, "deals-less")
    assert till.state(deal) == "opened_by_customer"
    page.get_by_role("button", name="Request it").click()
    expect(page.get_by_role("status").first).to_contain_text(
        "It takes effect when another person approves it."
    )
    assert till.state(deal) == "opened_by_customer"
    expect(page.locator(".decide a")).to_have_text("The request")
    expect(page.locator(f"tr[data-deal='{deal.deal_id}']")).to_contain_text("waits for approval")
    second = approved(
        page, at("admin"), f"End the appeal with {deal.invoice_amount} {deal.currency_code} received"
    )
    expect(second.locator(".statement")).not_to_contain_text(till.shop.merchant_id)
    expect(second.locator(".evidence")).to_contain_text(f"{deal.amount_fiat} {deal.currency_code}")
    expect(second.locator(".evidence figure img")).to_be_visible()
    expect(second.locator(".evidence .decide")).to_have_count(0)
    page.goto(f"{at.house.desk}/deals/{deal.deal_id}")
    expect(page.locator(".evidence")).to_contain_text(f"by {at.staff('admin').email}")
    expect(page.locator(".evidence")).to_contain_text("There is nothing left to decide.")
    part = f"{deal.invoice_amount} came, {counted.adjusted_amount} of the order's {deal.invoice_amount} count as paid"
    expect(page.locator(".evidence")).to_contain_text(part)
    looks_right(page, "deal")
    page.goto(f"{at.house.desk}/invoices/{deal.invoice_id}")
    expect(page.locator(".beside-facts")).to_contain_text(
        f"{deal.amount_fiat} were asked for, {deal.invoice_amount} came, {counted.adjusted_amount}"
    )
    looks_right(page, "invoice-part-payment")
    ended = till.desk.deals.GetDeal(pb.GetDealRequest(deal_id=deal.deal_id)).deal
    assert (ended.status, ended.adjusted_amount) == (
        pb.DEAL_STATUS_COMPLETED,
        counted.adjusted_amount,
    )


def test_late_money_is_answered_and_the_next_case_is_shown(till: Till, at: At) -> None:
    till.clear()  # other tests of this shop leave cases
    first, second = till.late("I sent it at noon"), till.late("Me too")
    list = f"/cases?merchant={till.shop.merchant_id}"
    page = at("desk")(f"/cases/{first}")
    looks_right(page, "case")
    page.goto(at.house.desk + list)
    expect(page.locator(".evidence blockquote")).to_have_text("I sent it at noon")
    looks_right(page, "cases")
    expect(page.locator(".evidence")).to_contain_text("It may answer until")
    till.returned(first)
    page.reload()
    looks_right(page, "cases-returned")
    expect(page.get_by_label("goes back to the customer")).to_be_checked()
    page.keyboard.press("a")
    expect(page.get_by_label("Answer for the customer")).to_be_focused()
    expect(page.get_by_label("Answer for the customer")).to_have_value(
        re.compile(r"90\.00 .* goes back to you")
    )
    send = page.get_by_role("button", name="Send the answer")
    assert send.evaluate("each => getComputedStyle(each, '::after').content") == '"Ctrl+Enter" / ""'
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("status").first).to_contain_text("The answer is given to the customer.")
    expect(page.locator(".evidence blockquote")).to_have_text("Me too")
    again = at.staff("admin").post(
        f"/cases/{first}/answer", {"back": list, "next": str(second), "outcome": "No.", "ended_as": "credit"}
    )
    assert "Nothing was changed: the case was answered already" in again.text
    assert f"Answered by <bdi>{at.staff('desk').email}</bdi>" in again.text


# -- accounts and rates


def test_an_account_is_added_filled_to_its_last_place_and_free_again(till: Till, at: At) -> None:
    method = till.desk.method(till.shop.currency, name="Narrow method")
    old = till.desk.requisite(method, account="old account")
    page = at("desk")(f"/requisites/{old}")
    page.keyboard.press("d")
    page.get_by_role("button", name="Disable the account").click()
    expect(page.get_by_role("status")).to_contain_text("Disabled")
    page.goto(f"{at.house.desk}/requisites?method={method}")
    page.keyboard.press("n")
    page.get_by_label("Account", exact=True).fill("narrow account")
    page.get_by_label("Holder").fill("Ann Holder")
    page.get_by_label("Most open deals").fill("1")
    page.get_by_role("button", name="Add the account").click()
    expect(page.get_by_role("status")).to_contain_text("The account is added.")
    deal = till.desk.choose(till.shop.create()["invoice_id"], method)
    page.goto(f"{at.house.desk}/requisites?method={method}")
    narrow = page.locator("[data-row]").filter(has_text="narrow account")
    expect(narrow).to_contain_text("1 of 1")
    expect(narrow).to_contain_text("full")
    expect(page.locator(".notice.bad")).to_contain_text("Narrow method")
    till.desk.deals.RejectDeal(pb.RejectDealRequest(deal_id=deal.deal_id))
    page.reload()
    expect(narrow).to_contain_text("0 of 1")


def test_a_rate_changes_at_once_inside_the_guard_and_by_two_people_outside_it(till: Till, at: At) -> None:
    code = till.desk.currency(rate="90.00", markup="0.1")
    prices, admin = at("prices"), at("admin")

    def in_force() -> str:
        rates = till.desk.catalog.ListRates(catalog_pb2.ListRatesRequest()).rates
        return next(each for each in rates if each.currency_code == code).in_force.source_rate

    def set_by_hand(rate: str) -> Page:
        page = prices(f"/rates/{code}")
        page.get_by_role("textbox", name=f"{code} per USDT").fill(rate)
        page.get_by_role("button", name="Set by hand").click()
        return page

    expect(set_by_hand("91").get_by_role("status")).to_contain_text("The rate is set.")
    assert in_force() == "91"
    page = set_by_hand("45.5")
    expect(page.locator(".held")).to_contain_text("45.5 is -50.00 % away from 91.00")
    page.get_by_role("button", name=f"Request 45.5 {code}").click()
    assert in_force() == "91"
    approved(page, admin, "45.5")
    assert in_force() == "45.5"

    hold = (
        "INSERT INTO held_rates (currency_code, source_rate, taken_at, document) VALUES (%s, %s, now(), %s)"
    )
    till.desk.catalog_database(hold, code, "60", HELD)
    page = prices("/rates")
    card = page.locator("li.card").filter(has=page.get_by_role("link", name=code, exact=True))
    expect(card).to_contain_text("The jump guard holds 60; in force is 45.5: +31.87 %")
    expect(card).to_contain_text("no answer")
    looks_right(page, "rates")
    assert float(card.locator("meter").get_attribute("value") or 0) > 50
    card.get_by_text("Accept it").click()
    card.get_by_role("button", name="Request to accept 60").click()
    expect(page.get_by_role("link", name="The request", exact=True)).to_be_visible()
    looks_right(page, "rate")
    approved(page, admin, "60")
    assert in_force() == "60"
    looks_right(prices(f"/rates/{code}/accepted"), "rate-accepted")


# -- merchants and their money


def test_the_exported_month_is_what_the_ledger_credited(till: Till, at: At, tmp_path: Path) -> None:
    till.paid()
    till.paid()
    page = at("auditor")("/")

    def file(path: str) -> list[dict[str, str]]:
        page.goto(at.house.desk + path)
        with page.expect_download() as download:
            page.get_by_role("link", name="CSV", exact=True).click()
        download.value.save_as(tmp_path / "file.csv")
        return [*csv.DictReader((tmp_path / "file.csv").read_text().splitlines())]

    def sums() -> tuple[list[Any], list[Any]]:
        rows = file(f"/reports?period=month&merchant={till.shop.merchant_id}")
        credits = [
            Decimal(row["amount"])
            for row in file(f"/merchants/{till.shop.merchant_id}/statement")
            if row["kind"] == "credit"
        ]
        return (
            [sum(int(row["confirmed"]) for row in rows), sum(Decimal(row["credited_usdt"]) for row in rows)],
            [len(credits), sum(credits)],
        )

    settled(lambda: sums()[0] == sums()[1], "the report and the ledger have the same month")
    assert sums()[0][0] >= 2
