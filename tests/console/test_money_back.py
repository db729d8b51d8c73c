"""Each way in which money comes late or goes back, in the browsers of the people who do it: two operators, a member of
the merchant, its customer.
"""

import re
from dataclasses import dataclass
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from fiatgate.invoices.v1.invoices_pb2 import GetCaseRequest
from kit.base.money import amount_text
from tests.console.conftest import Open, Staff, with_cookies
from tests.console.house import House
from tests.console.test_corrections import Shop
from tests.console.till import Till
from tests.gateway.desk import unique

IBAN: Final = "DE89370400440532013000"
NOTHING: Final = "0.000000"


@dataclass(frozen=True)
class People:
    """The pages of an operator with desk and treasury, a second one, an owner of the shop, and its customer."""

    shop: Shop
    operator: Page
    second: Page
    owner: Page
    customer: Page
    desk: str
    dashboard: str

    def approves(self) -> None:
        """The second operator approves what the first one has requested, by the link on the first one's page."""
        link = self.operator.get_by_role("main").locator('a[href*="/approvals/withdrawals/"]').first
        self.second.goto(self.desk + (link.get_attribute("href") or ""))
        self.second.get_by_text("Approve", exact=True).click()
        self.second.get_by_role("button", name="Approve and do it").click()
        expect(self.second.get_by_role("status")).to_have_text("Approved and done.")

    def corrects(self, **fields: str) -> None:
        """The operator fills in the form and looks at what it does."""
        for label, value in ({"Reason": "As the bank says", "Evidence": unique("BR")} | fields).items():
            self.operator.get_by_label(label).fill(value)
        self.operator.get_by_role("button", name="Look at it").click()

    def does(self, button: str, notice: str) -> None:
        self.operator.get_by_role("button", name=button).click()
        expect(self.operator.get_by_role("status").first).to_contain_text(notice)

    def reads(self, path: str, *texts: str | re.Pattern[str]) -> None:
        """The owner opens the page of the dashboard and reads the texts."""
        self.owner.goto(self.dashboard + path)
        for each in texts:
            expect(self.owner.get_by_role("main")).to_contain_text(each)


@pytest.fixture
def people(till: Till, house: House, staff: Staff, open_page: Open) -> People:
    shop = Shop(till.desk, till.desk.open_shop(till.shop.currency), till.method)
    owner = house.person("owner", merchant=shop.shop.merchant_id)
    owner.add_factors()
    house.step_up(owner)
    return People(
        shop,
        staff.page(open_page, "desk", "treasury"),
        staff.page(open_page, "admin"),
        with_cookies(open_page(), owner),
        open_page(),
        house.desk,
        house.dashboard,
    )


# -- corrections: each row of the table in docs/operators.md


def test_a_wrong_confirmation_becomes_a_debt_that_the_next_payment_pays(people: People) -> None:
    shop = people.shop
    invoice, credit = shop.credited(), shop.balance().available
    shop.withdrawn()
    people.operator.goto(f"{people.desk}/invoices/{invoice}")
    people.operator.get_by_role("link", name="Take back").click()
    people.corrects(Reason="The bank took it back")
    expect(people.operator.get_by_role("main")).to_contain_text(
        re.compile(f"Becomes a debt\\s*{amount_text(credit)}")
    )
    people.does("Request it", "The request is recorded")
    assert shop.balance().owed == NOTHING
    people.approves()
    people.reads("/", f"You owe {amount_text(credit)}")
    people.reads("/balance", "Became a debt", "The bank took it back")
    shop.credited()
    people.reads("/balance", "Paid the debt")
    people.reads("/")
    expect(people.owner.get_by_role("main")).not_to_contain_text("You owe")


def test_late_money_is_credited_from_its_case_as_the_merchant_answers(people: People) -> None:
    shop = people.shop
    number = shop.late("I paid at noon")
    people.reads("/", "credit it or return it?")
    people.owner.get_by_role("link", name="Answer").click()
    people.owner.get_by_label("Credit it to us").check()
    people.owner.get_by_role("button", name="Answer").click()
    expect(people.owner.get_by_role("status").first).to_contain_text("Your answer is given to the operator.")
    people.operator.goto(f"{people.desk}/cases/{number}")
    people.operator.get_by_role("link", name="Credit it").click()
    people.corrects(**{"Amount that came": "900"})
    expect(people.operator.get_by_role("main")).to_contain_text("locked by the deal")
    people.does("Do it", "The balance is corrected.")
    people.does("Send the answer", "The answer is given to the customer.")
    assert shop.balance().available != NOTHING
    people.reads(f"/cases/{number}", "credited to")
    invoice = people.shop.desk.deals.GetCase(GetCaseRequest(number=number)).case.invoice_id
    people.reads(f"/invoices/{invoice}", "commission")
    expect(people.owner.get_by_role("link", name="Refund", exact=True)).to_be_visible()
    people.reads("/balance", "As the bank says")


def test_what_came_beyond_the_amount_is_credited(people: People) -> None:
    invoice = people.shop.credited()
    before = people.shop.balance().available
    people.operator.goto(f"{people.desk}/invoices/{invoice}")
    people.operator.get_by_role("link", name="More came").click()
    people.corrects(**{"Amount that came in all": "1500"})
    expect(people.operator.get_by_role("main")).to_contain_text("of 1,500.00 that came")
    people.does("Do it", "The balance is corrected.")
    assert float(people.shop.balance().available) > float(before)
    people.reads(f"/invoices/{invoice}", "As the bank says")


@pytest.mark.parametrize(
    ("direction", "available", "owed"),
    [
        ("The merchant gets the amount", "7.500000", NOTHING),
        ("The amount is taken from the merchant", NOTHING, "7.500000"),
    ],
)
def test_a_balance_is_corrected_by_hand_by_two(
    people: People, direction: str, available: str, owed: str
) -> None:
    people.operator.goto(f"{people.desk}/corrections?merchant={people.shop.shop.merchant_id}")
    people.operator.get_by_role("link", name="Correct a balance").click()
    people.operator.get_by_label("Direction").select_option(direction)
    people.corrects(**{"Amount in USDT": "7.50", "Reason": "As agreed"})
    people.does("Request it", "The request is recorded")
    people.approves()
    balance = people.shop.balance()
    assert (balance.available, balance.owed) == (available, owed)
    people.reads("/balance", "As agreed")


# -- refunds: each end


def requested(people: People, *, amount: str, by_customer: bool, paid: str) -> str:
    """The path of a refund that the owner has requested, with an account."""
    people.shop.credited(amount=paid)
    invoice = people.shop.credited(amount=paid)
    people.owner.goto(f"{people.dashboard}/invoices/{invoice}")
    people.owner.get_by_role("link", name="Refund", exact=True).click()
    people.owner.get_by_label("Amount in").fill(amount)
    if by_customer:
        people.owner.get_by_label("The customer gives it").check()
    else:
        people.owner.get_by_label("I give it here").check()
        people.owner.get_by_label("Kind of account").select_option("iban")
        people.owner.get_by_label("Account", exact=True).fill(IBAN)
        people.owner.get_by_label("Holder").fill("Ada Lovelace")
    people.owner.get_by_role("button", name="Look at it").click()
    people.owner.get_by_role("button", name="Request the refund").click()
    expect(people.owner.get_by_text("The refund is requested")).to_be_visible()
    path = people.owner.url.removeprefix(people.dashboard).partition("?")[0]
    if by_customer:
        link = people.owner.get_by_role("main").locator("code", has_text="/pay/").inner_text()
        people.customer.goto(link)
        people.customer.get_by_label("Account", exact=True).fill(IBAN)
        people.customer.get_by_label("Account holder").fill("Ada Lovelace")
        people.customer.get_by_role("button", name="Get the refund").click()
        expect(people.customer.get_by_text(re.compile("to ···3000: requested"))).to_be_visible()
    return path


def sent(people: People, path: str, *, by_two: bool) -> None:
    people.operator.goto(people.desk + path)
    people.operator.get_by_text("I am sending it", exact=True).first.click()
    people.operator.get_by_role("button", name="I am sending it").click()
    if by_two:
        people.approves()
        people.operator.goto(people.desk + path)


@pytest.mark.parametrize(
    ("end", "by_customer", "by_two"),
    [
        ("succeeded", False, False),
        ("succeeded", True, True),
        ("failed", True, False),
        ("failed", False, False),
        ("canceled", True, False),
        ("canceled", False, False),
    ],
)
def test_a_refund_is_requested_given_an_account_and_ended(
    people: People, end: str, by_customer: bool, by_two: bool
) -> None:
    paid, amount = ("95000", "90000") if by_two else ("100", "90")
    path = requested(people, amount=amount, by_customer=by_customer, paid=paid)
    assert people.shop.balance().reserved == ("1000.000000" if by_two else "1.000000")
    operator = people.operator
    if end == "canceled":
        operator.goto(people.desk + path)
        operator.get_by_text("Cancel", exact=True).click()
        people.does("Cancel the refund", "The refund is canceled.")
    else:
        sent(people, path, by_two=by_two)
        people.reads(path, "sent it, so it can’t be canceled")
    if end == "succeeded":
        operator.get_by_label("Bank’s reference").fill(unique("BR"))
        people.does("It is done", "The customer has the money back.")
    if end == "failed":
        operator.get_by_text("It failed", exact=True).click()
        operator.get_by_label("Reason").fill("The account is closed")
        people.does("Mark it as failed", "It is marked as failed.")
    assert people.shop.balance().reserved == NOTHING
    says = {
        "succeeded": ("Your customer got", "Bank’s reference"),
        "failed": ("Your customer did not get", "The account is closed", "is available again"),
        "canceled": ("Your customer does not get", "is available again"),
    }
    people.reads(path, *says[end])
    tells = {"succeeded": "to ···3000: done", "failed": "The account is closed", "canceled": ""}[end]
    if tells and by_customer:
        people.customer.reload()
        expect(people.customer.locator("body")).to_contain_text(tells)


def test_late_money_goes_back_from_its_case_to_the_account_that_the_customer_gives(people: People) -> None:
    number = people.shop.late("I paid at noon")
    invoice = people.shop.desk.deals.GetCase(GetCaseRequest(number=number)).case.invoice_id
    operator = people.operator
    operator.goto(f"{people.desk}/cases/{number}")
    operator.get_by_role("link", name="Return it").click()
    operator.get_by_label("Amount in").fill("900")
    people.does("Put it into the queue", "It stands in the queue.")
    path = operator.url.removeprefix(people.desk).partition("?")[0]
    people.customer.goto(f"{people.shop.shop.url}/pay/{invoice}")
    people.customer.get_by_label("Account", exact=True).fill(IBAN)
    people.customer.get_by_label("Account holder").fill("Ada Lovelace")
    people.customer.get_by_role("button", name="Get the refund").click()
    sent(people, path, by_two=False)
    operator.get_by_label("Bank’s reference").fill(unique("BR"))
    people.does("It is done", "The customer has the money back.")
    operator.goto(f"{people.desk}/cases/{number}")
    people.does("Send the answer", "The answer is given to the customer.")
    people.reads(f"/cases/{number}", "sent back to the customer")
    assert people.shop.balance().available == NOTHING
