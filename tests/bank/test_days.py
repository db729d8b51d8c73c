"""The day's end of an account: a difference of zero proves that no line is missing between two balances."""

from collections.abc import Sequence
from decimal import Decimal
from uuid import UUID, uuid4

import pytest
from sqlalchemy import text

from kit.base.clock import SystemClock
from services.bank.operations import days, lines
from services.bank.store.days import Day
from services.bank.store.lines import add_matches
from services.bank.store.views import MatchView
from services.bank.wiring import Deps
from tests.bank.shapes import balance, entry
from tests.bank.test_importing import imported, of, problems_of, stored
from tests.support.acting import refusal


def listed(bank: Deps, account: str, *, after: str = "", most: int = 0) -> Sequence[Day]:
    span = {"first_day": "2026-01-01", "last_day": "2026-01-31"}
    return days.list_days(bank, **span, account=account, after_key=after, limit=most)


def on(day: int) -> str:
    return f"<BookgDt><Dt>2026-01-{day:02}</Dt></BookgDt>"


def balances(opening: str, closing: str, *, first: int, last: int) -> str:
    return balance("OPBD", opening, day=f"2026-01-{first:02}") + balance(
        "CLBD", closing, day=f"2026-01-{last:02}"
    )


def shown(day: Day) -> str:
    """The day of the month, and its figures as a person reads them."""
    parts = (day.matched, day.proposed + day.unmatched, day.ignored, -day.debits, day.reversed)
    moved = " ".join(f"{each:+.0f}" for each in parts)
    return f"{day.day.day}: {day.opening} {moved} = {day.closing}, {day.difference}"


def paid(bank: Deps, line_id: UUID, amount: str) -> None:
    match = MatchView(
        number=1 + uuid4().int % 10**12,
        line_id=line_id,
        deal_id=uuid4(),
        invoice_id=uuid4(),
        amount=Decimal(amount),
        paid_at=SystemClock().now(),
    )
    with bank.db.transaction() as tx:
        add_matches(tx, [match])


def test_opening_and_lines_come_to_closing(bank: Deps) -> None:
    file = of(
        "D1",
        *(entry(amount, days=on(2)) for amount in ("50.00", "30.00", "7.00")),
        entry("20.00", mark="DBIT", days=on(2)),
        entry("5.00", mark="DBIT", days=on(2), before="<RvslInd>true</RvslInd>"),
        entry("9.00", days=on(2), status="<Cd>PDNG</Cd>"),
        balances=balances("100.00", "162.00", first=2, last=2),
    )
    imported(bank, file)
    by_amount = {line.amount: line.id for line in stored(bank, "D1")}
    paid(bank, by_amount[Decimal(50)], "40.00")
    lines.ignore_line(bank, line_id=str(by_amount[Decimal(7)]), reason="interest")
    with bank.db.transaction() as tx:
        tx.execute(
            text(
                "UPDATE lines SET state = 'proposed', deal_id = id, invoice_id = id, deal_amount = 1"
                " WHERE account = 'D1' AND amount = 30"
            )
        )
    (day,) = listed(bank, "D1")
    assert (day.proposed, day.unmatched) == (Decimal(30), Decimal(10))
    assert shown(day) == "2: 100.00 +40 +40 +7 -20 -5 = 162.00, 0.00"
    assert (day.lines, day.open_lines) == (5, 2)


def test_money_that_went_out_is_split_into_refunds_and_other_debits(bank: Deps) -> None:
    went = [entry(amount, mark="DBIT", days=on(6)) for amount in ("20.00", "3.00", "1.00")]
    file = of("D7", entry("30.00", days=on(6)), *went, balances=balances("0.00", "6.00", first=6, last=6))
    imported(bank, file)
    ids = {f"{line.amount:.0f}": str(line.id) for line in stored(bank, "D7")}
    refund = str(uuid4())
    for line, of_refund in (("20", refund), ("20", refund), ("3", str(uuid4()))):
        lines.link_refund(bank, line_id=ids[line], refund_id=of_refund)
    for line in ("1", "30"):  # another line is the refund; the money came in
        told = refusal(lambda line=line: lines.link_refund(bank, line_id=ids[line], refund_id=refund))
        assert told.reason == "BANK_LINE_CONFLICT"
    lines.link_refund(bank, line_id=ids["3"], refund_id="")
    (day,) = listed(bank, "D7")
    assert (f"{day.refunds:.0f}", f"{day.debits:.0f}", f"{day.difference:.0f}") == ("20", "4", "0")
    assert "refund_id" not in problems_of(bank, "lines")
    with bank.db.transaction() as tx:
        tx.execute(text("UPDATE lines SET refund_id = gen_random_uuid() WHERE id = :id"), {"id": ids["3"]})
    assert "refund_id" in problems_of(bank, "lines")
    lines.link_refund(bank, line_id=ids["3"], refund_id="")


def test_a_day_without_a_balance_has_no_difference_and_the_next_one_counts_both(bank: Deps) -> None:
    file = of(
        "D2",
        entry("10.00", days=on(5)),
        entry("15.00", days=on(7)),
        balances=balances("100.00", "125.00", first=5, last=7),
    )
    imported(bank, file)
    assert [shown(day) for day in listed(bank, "D2")] == [
        "7: 110.00 +0 +15 +0 +0 +0 = 125.00, 0.00",
        "5: 100.00 +0 +10 +0 +0 +0 = None, None",
    ]


def test_a_file_that_is_missing_shows_as_a_difference_once(bank: Deps) -> None:
    for opening, closing, day in (("0.00", "10.00", 10), ("14.00", "24.00", 12), ("24.00", "34.00", 13)):
        parts = balances(opening, closing, first=day, last=day)
        imported(bank, of("D3", entry("10.00", days=on(day)), balances=parts))
    assert [(day.day.day, f"{day.difference:.2f}") for day in listed(bank, "D3")] == [
        (13, "0.00"),
        (12, "4.00"),
        (10, "0.00"),
    ]


def test_a_day_without_lines_is_there_when_a_statement_ends_on_it(bank: Deps) -> None:
    imported(bank, of("D4", entry("10.00", days=on(3)), balances=balances("0.00", "10.00", first=3, last=3)))
    imported(bank, of("D4", balances=balances("10.00", "10.00", first=3, last=4)))
    assert shown(listed(bank, "D4")[0]) == "4: 10.00 +0 +0 +0 +0 +0 = 10.00, 0.00"


def test_pages_follow_each_other(bank: Deps) -> None:
    for account in ("D6", "D5"):
        imported(bank, of(account, *(entry("1.00", days=on(day)) for day in (20, 21))))
    found: list[Day] = []
    while page := listed(bank, "", after=found[-1].key if found else "", most=3):
        found += page
    keys = [day.key for day in found]
    assert len(keys) == len(set(keys))
    mine = [key for key in keys if key.split("/")[1] in ("D5", "D6")]
    assert mine == [f"2026-01-{day}/{account}/EUR" for day in (21, 20) for account in ("D5", "D6")]


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("first_day", {"first_day": "yesterday"}),
        ("last_day", {"last_day": "2025-12-31"}),
        ("after_key", {"after_key": "D1"}),
    ],
)
def test_a_span_and_a_key_are_checked(bank: Deps, field: str, given: dict[str, str]) -> None:
    asked = {"first_day": "2026-01-01", "last_day": "2026-01-31", "account": "", "after_key": ""} | given
    refused = refusal(days.list_days, bank, **asked, limit=0)
    assert refused.reason == "VALIDATION_ERROR" and field in str(refused.metadata)


def test_accounts_are_listed_with_the_first_day_of_their_lines(bank: Deps) -> None:
    for account in ("E2", "E1"):
        parts = balances("0.00", "1.00", first=9, last=15)
        imported(bank, of(account, entry("1.00", days=on(15)), balances=parts))
    found = {each.account: each.first_day.day for each in days.list_accounts(bank)}
    assert (found["E1"], found["E2"]) == (9, 9)
    assert list(found) == sorted(found)


def test_the_first_day_is_that_of_the_oldest_file_not_of_the_first_one(bank: Deps) -> None:
    for first in (20, 9):
        imported(
            bank,
            of(
                "E3",
                entry("1.00", days=on(first + 1)),
                balances=balances("0", "1", first=first, last=first + 1),
            ),
        )
    imported(bank, of("E4", entry("1.00", days=on(20)), entry("2.00", days=on(7))))
    found = {each.account: each.first_day.day for each in days.list_accounts(bank)}
    assert (found["E3"], found["E4"]) == (9, 7)
