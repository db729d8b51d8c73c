"""A day of bank lines at the desk in a browser: a statement of 300 lines, from its import to the day's end."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from deploy.local.waiting import wait_until
from fiatgate.invoices.v1 import invoices_pb2 as pb
from kit.base.clock import SystemClock
from kit.base.codes import in_groups
from kit.base.money import money_text
from tests.bank.shapes import balance, camt, entry, ustrd
from tests.console.conftest import Open, Staff
from tests.console.house import Person
from tests.console.looks import looks_right
from tests.console.till import Till
from tests.gateway.desk import settled

ACCOUNT: Final = "300300300300"
LINES: Final = 300
OPENING: Final = Decimal("10000.00")
OUT: Final = 60
SECONDS: Final = 60
LONG: Final = 1000.0 * SECONDS


@pytest.fixture
def own_till(till: Till) -> Till:
    """A shop whose method has the account of this day alone."""
    method = till.desk.method(till.shop.currency, takes_reference=True)
    till.desk.requisite(method, account=ACCOUNT)
    return Till(till.desk, till.desk.open_shop(till.shop.currency), method)


def deals_of(till: Till) -> dict[str, list[pb.Deal]]:
    """40 deals, by what becomes of their money."""
    late = [till.chosen() for _ in range(2)]
    for deal in late:
        till.desk.checkout.CancelCheckout(pb.CancelCheckoutRequest(invoice_id=deal.invoice_id))
    counts = {"plain": 20, "mangled": 4, "less": 3, "more": 3, "twice": 2, "bare": 1}
    return {
        **{kind: [till.chosen() for _ in range(count)] for kind, count in counts.items()},
        "late": late,
        "byhand": [till.paid() for _ in range(3)],
        "named": [till.marked(sender=f"Ann Bell{chr(97 + number)}") for number in range(2)],
    }


def lines_for(kind: str, deal: pb.Deal, number: int) -> list[tuple[Decimal, str, str]]:
    """The amounts, texts and senders of the lines for a deal."""
    amount, reference = Decimal(deal.amount_fiat), in_groups(deal.reference)
    if kind == "mangled":
        reference = f"svwz+order:{reference[:3]} / {reference[3:]}".lower().replace("0", "o")
    elif kind in ("named", "bare"):
        reference = "thank you"
    amount += {"less": -7, "more": 5}.get(kind, 0)
    sender = f"Ann Bell{chr(97 + number)}" if kind == "named" else ""
    return [(amount, f"{kind} {reference}", sender)] * (2 if kind == "twice" else 1)


def statement(deals: dict[str, list[pb.Deal]], currency: str) -> bytes:
    """A file with the lines for the deals, those that went out, and those of strangers, with both balances."""
    came = [
        line for kind, of in deals.items() for n, deal in enumerate(of) for line in lines_for(kind, deal, n)
    ]
    came += [(Decimal(n % 50 + 1), f"rent {n}", "Sam Stranger") for n in range(LINES - OUT - len(came))]
    went = [Decimal(n + 1) for n in range(OUT)]
    today = str(SystemClock().now().date())
    days = f"<BookgDt><Dt>{today}</Dt></BookgDt>"
    entries = [
        entry(f"{amount}", f"<RltdPties><Dbtr><Nm>{sender}</Nm></Dbtr></RltdPties>{ustrd(text)}", days=days)
        for amount, text, sender in came
    ]
    entries += [entry(f"{amount}", ustrd(f"fee {amount}"), mark="DBIT", days=days) for amount in went]
    closing = OPENING + sum(amount for amount, _, _ in came) - sum(went)
    ends = balance("OPBD", f"{OPENING}", day=today) + balance("CLBD", f"{closing}", day=today)
    account = f"<Othr><Id>{ACCOUNT}</Id></Othr>"
    return camt(*entries, balances=ends, account=account).replace("EUR", currency).encode()


def counted(operator: Person) -> Counter[str]:
    return Counter(row["state"] for row in operator.rows("/bank.csv", state="all", account=ACCOUNT))


def on_list(page: Page, url: str, state: str, text: str) -> int:
    """Opens the list, and its next pages, until one has a row with the text; returns the row's place."""
    page.goto(f"{url}/bank?state={state}&account={ACCOUNT}")
    while not (
        at := [n for n, row in enumerate(page.locator("[data-row]").all_inner_texts()) if text in row]
    ):
        page.get_by_role("link", name="Next page").click()
    return at[0]


def test_a_statement_of_300_lines_is_worked_off_until_the_day_adds_up(
    own_till: Till, staff: Staff, open_page: Open
) -> None:
    deals, currency = deals_of(own_till), own_till.shop.currency
    operator = staff("desk")
    page = staff.page(open_page, "desk")

    page.goto(f"{operator.url}/bank/files")
    content = statement(deals, currency)
    file = {"name": "day.xml", "mimeType": "application/xml", "buffer": content}
    page.get_by_label("File", exact=True).set_input_files(file)  # type: ignore[arg-type]
    page.get_by_role("button", name="Import").click()
    expect(page.locator("h1")).to_contain_text("day.xml")
    wait_until(
        lambda: not counted(operator)["waiting"] and bool(counted(operator)),
        "proposals",
        timeout_seconds=SECONDS,
    )
    page.reload()
    expect(page.locator("main")).to_contain_text("300 lines, 300 of them new")
    assert counted(operator) == {"proposed": 41, "unmatched": 199, "outgoing": OUT}

    page.goto(f"{operator.url}/bank?account={ACCOUNT}")
    looks_right(page, "bank-300")
    page.get_by_role("button", name="Confirm all certain ones").click()
    certain = [*deals["plain"], *deals["mangled"], *deals["twice"]]
    expect(page.locator("h1")).to_have_text("Confirm 26 deals?")
    total = sum(Decimal(deal.amount_fiat) for deal in certain)
    expect(page.locator("main")).to_contain_text(f"Together {money_text(f'{total}', currency)}.")
    expect(page.locator("main")).to_contain_text("2 further lines are left out")
    page.get_by_role("button", name="Confirm them").click()
    expect(page.get_by_role("status").first).to_contain_text("each paid by its line", timeout=LONG)

    for text in ("byhand", "named", "byhand", "named", "byhand"):
        for _ in range(on_list(page, operator.url, "proposed", text) + 1):
            page.keyboard.press("j")
        page.keyboard.press("c")
        done = "linked to its deal" if text == "byhand" else "paid by its line"
        expect(page.get_by_role("status").first).to_contain_text(done)
        expect(page).to_have_url(re.compile(f"account={ACCOUNT}"))
    at = on_list(page, operator.url, "proposed", "less")
    for _ in range(at + 1):
        page.keyboard.press("j")
    page.keyboard.press("c")  # acts on no other row
    expect(page.locator(".is-selected")).to_contain_text("less")

    on_list(page, operator.url, "unmatched", "bare")
    page.locator("[data-row]").filter(has_text="bare").get_by_role("link").first.click()
    page.get_by_label("Reference or id of the deal").fill(in_groups(deals["bare"][0].reference))
    page.get_by_role("button", name="It paid this deal").click()
    expect(page.get_by_role("status").first).to_contain_text("paid by its line")

    on_list(page, operator.url, "unmatched", "rent")
    for key in ("j", "Enter"):
        page.keyboard.press(key)
    page.wait_for_url(re.compile("/bank/[0-9a-f-]{36}$"))
    page.keyboard.press("x")
    page.get_by_label("Reason").fill("our own rent")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("The line is ignored.")

    expected = {"proposed": 10, "unmatched": 197, "ignored": 1, "matched": 32, "outgoing": OUT}
    assert counted(operator) == expected
    paid = [deal for kind in ("plain", "mangled", "twice", "byhand", "named", "bare") for deal in deals[kind]]
    today = str(SystemClock().now().date())
    page.goto(f"{operator.url}/bank/days?since={today}&until={today}&account={ACCOUNT}")
    looks_right(page, "bank-days-300")
    expect(page.locator("[data-row] .badge")).to_have_text("none")
    (day,) = operator.rows("/bank/days.csv", since=today, until=today, account=ACCOUNT)
    assert Decimal(day["matched"]) == sum(Decimal(deal.amount_fiat) for deal in paid)
    assert (day["lines"], day["open_lines"], day["difference"]) == ("300", "207", "0.00")
    request = pb.ListDealsRequest(deal_ids=[deal.deal_id for deal in paid], limit=100)
    ended = own_till.desk.deals.ListDeals(request).deals
    assert [deal.sub_status for deal in ended] == ["successfully_paid"] * 32
    credits = sum(Decimal(deal.merchant_usdt) for deal in ended)
    settled(lambda: Decimal(own_till.desk.available(own_till.shop)) == credits, "each deal is credited once")
    unpaid = [deal for kind in ("less", "more") for deal in deals[kind]]
    assert {own_till.state(deal) for deal in unpaid} == {"awaiting_payment"}
