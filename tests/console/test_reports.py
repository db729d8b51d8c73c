"""Reports of the desk: the same numbers on the page, in the file, at the command line and in the ledger."""

from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from playwright.sync_api import expect

from cli.commands.reports import BALANCES_BY
from console.reports import pages
from console.ui.periods import days_of
from console.words.reports import BALANCE_COLUMNS, COLUMNS
from fiatgate.invoices.v1 import invoices_pb2
from kit.base.clock import SystemClock
from kit.base.money import amount_text
from tests.console.conftest import Open, Staff
from tests.console.house import House, Person
from tests.console.looks import looks_right
from tests.e2e.market import Customer, Operator, Shop, settled


@pytest.fixture(scope="module")
def operator(house: House) -> Iterator[Operator]:
    with Operator(house.stack) as operator:
        yield operator


@pytest.fixture(scope="module")
def shop(house: House, operator: Operator) -> Shop:
    """A merchant with a day behind it: two confirmed, one rejected, one that chose no method."""
    shop = Shop.opened(house.stack)
    sold = [shop.create("https://shop.example/hook") for _ in range(4)]
    for invoice in sold[:3]:
        Customer(invoice.created["payment_link"]).choose_and_pay()
    operator.confirm(sold[0])
    operator.confirm(sold[1])
    deal_id = sold[2].read()["deal"]["deal_id"]
    operator.desk.RejectDeal(invoices_pb2.RejectDealRequest(deal_id=deal_id, note="Nothing came"))
    return shop


@pytest.fixture(scope="module")
def reader(staff: Staff) -> Person:
    return staff("auditor")


def file_of(reader: Person, shop: Shop, **given: str) -> list[dict[str, str]]:
    return reader.rows("/reports.csv", merchant=shop.merchant_id, **given)


def test_page_file_and_command_have_the_same_numbers(house: House, reader: Person, shop: Shop) -> None:
    (row,) = file_of(reader, shop, by="currency")
    month = SystemClock().now().replace(day=1).date().isoformat()
    assert file_of(reader, shop, since=month) == file_of(reader, shop, period="month")
    counts = {
        name: row[name] for name in ("created", "chosen", "marked", "confirmed", "rejected", "conversion")
    }
    assert counts == {
        "created": "4",
        "chosen": "3",
        "marked": "3",
        "confirmed": "2",
        "rejected": "1",
        "conversion": "50.00",
    }
    printed = house.stack.cli("reports", "--by", "currency", "--merchant", shop.merchant_id)["rows"]
    assert [{name: str(printed[0][name]) for name in COLUMNS}] == [{name: row[name] for name in COLUMNS}]
    page = reader.get("/reports", params={"merchant": shop.merchant_id, "by": "currency"}).text
    sums = (row["turnover"], row["commission_usdt"], row["credited_usdt"])
    assert all(amount_text(each) in page for each in sums)
    merchants = file_of(reader, shop, by="merchant")
    assert [(each["key"], each["name"]) for each in merchants] == [(shop.merchant_id, "Lamp shop")]
    methods = {each["key"]: each for each in file_of(reader, shop, by="method")}
    assert (methods[""]["created"], methods["eur-card"]["conversion"]) == ("4", "66.67")


def test_the_columns_of_balances_add_up_to_the_balance(
    house: House, staff: Staff, reader: Person, operator: Operator, open_page: Open
) -> None:
    shop, cli = Shop.opened(house.stack), house.stack.cli
    sold = shop.create("https://shop.example/hook")
    Customer(sold.created["payment_link"]).choose_and_pay()
    operator.confirm(sold)
    settled(lambda: Decimal(cli("balance", shop.merchant_id)["available"]) > 0, "the credit")
    invoice = ("--invoice", sold.created["invoice_id"])
    says = ("--reason", "More came", "--evidence", "BR-1")
    more = cli("corrections", "make", "--kind", "surplus", *invoice, "--received", "1000.00", *says)
    cli("refunds", "request", *invoice, "--merchant", shop.merchant_id, "--amount", "5.00")
    rows = {by: reader.rows("/reports/balances.csv", merchant=shop.merchant_id, by=by) for by in BALANCES_BY}
    balance = cli("balance", shop.merchant_id)
    assert balance["reserved"] != "0.000000", "what is held for a refund is the merchant's"
    for (row,) in rows.values():
        assert Decimal(row["change"]) == Decimal(balance["available"]) + Decimal(balance["reserved"])
        assert row["received"] == more["amount"]
        assert sum(
            Decimal(row[each]) for each in BALANCE_COLUMNS if each not in ("key", "change")
        ) == Decimal(row["change"])
    assert (rows["merchant"][0]["key"], rows["merchant"][0]["name"]) == (shop.merchant_id, "Lamp shop")
    for by, (row,) in rows.items():
        (printed,) = cli("reports", "--balances", "--by", by, "--merchant", shop.merchant_id)
        assert printed == {each: row[each] for each in BALANCE_COLUMNS}
    page = staff.page(open_page, "auditor", viewport={"width": 1440, "height": 900})
    page.goto(f"{house.desk}/reports/balances?by=merchant")
    looks_right(page, "balances")
    expect(page.locator("[data-row]").filter(has_text=amount_text(rows["day"][0]["change"]))).to_be_visible()
    page.goto(f"{house.desk}/reports/balances?since=yesterday")
    expect(page.locator("#since-error")).to_have_text("A day is written as 2026-03-31.")


@pytest.mark.parametrize(
    ("period", "expected"),
    [
        ({}, ("2026-03-09", "2026-03-15")),
        ({"period": "today"}, ("2026-03-15", "2026-03-15")),
        ({"period": "30"}, ("2026-02-14", "2026-03-15")),
        ({"period": "month"}, ("2026-03-01", "2026-03-15")),
        ({"period": "last-month"}, ("2026-02-01", "2026-02-28")),
        ({"period": "year"}, ("2025-04-01", "2026-03-15")),
        ({"since": "2026-01-01"}, ("2026-01-01", "2026-03-15")),
        ({"until": "2026-01-01"}, ("2026-01-01", "2026-01-01")),
        ({"since": "2026-01-01", "until": "2026-01-31"}, ("2026-01-01", "2026-01-31")),
    ],
)
def test_a_period_has_its_days(period: dict[str, str], expected: tuple[str, str]) -> None:
    asked: Any = {"period": "7", "since": "", "until": ""} | period
    assert days_of(asked, SystemClock().now().date().replace(2026, 3, 15)) == expected


def test_a_time_is_written_for_people() -> None:
    for seconds, text in ((9, "9 s"), (250, "4 min 10 s"), (7380, "2 h 03 min")):
        row: Any = SimpleNamespace(HasField=lambda field: True, median_seconds=seconds)
        assert pages.duration(row, "median_seconds") == text


def test_the_report_is_seen(house: House, staff: Staff, shop: Shop, open_page: Open) -> None:
    page = staff.page(open_page, "auditor", viewport={"width": 1440, "height": 900})
    page.goto(f"{house.desk}/reports?merchant={shop.merchant_id}")
    expect(page.get_by_role("heading", name="Reports")).to_be_visible()
    expect(page.locator("[data-row]")).to_have_count(1)
    expect(page.locator("figure.chart")).to_have_count(2)
    looks_right(page, "reports")
    page.get_by_role("link", name="By method").click()
    expect(page.locator("[data-row]")).to_have_count(2)
    expect(page.locator(".total tr")).to_have_count(1)
    page.goto(f"{house.desk}/reports?since=yesterday")
    expect(page.locator("#since-error")).to_have_text("A day is written as 2026-03-31.")
