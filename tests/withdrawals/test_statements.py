"""Statements: every transfer of a merchant once, in order of time, with the balance after it."""

import uuid
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from sqlalchemy import event

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from kit.base.money import usdt_text
from kit.base.proto import datetime_from, timestamp_from
from services.withdrawals.operations import days, ledger
from tests.withdrawals.conftest import House
from tests.withdrawals.test_rpc import refusal

MONTHS = [datetime(2027, month, 1, tzinfo=UTC) for month in range(1, 5)]
CREDIT, RESERVE, PAY, FEE, RELEASE = (
    pb.TRANSFER_KIND_CREDIT,
    pb.TRANSFER_KIND_RESERVE,
    pb.TRANSFER_KIND_PAY,
    pb.TRANSFER_KIND_FEE,
    pb.TRANSFER_KIND_RELEASE,
)
NOTHING = (Decimal(0), Decimal(0))
SIGNS = {CREDIT: (1, 0), RESERVE: (-1, 1), PAY: (0, -1), FEE: (0, -1), RELEASE: (1, -1)}


def transfers(house: House, **values: Any) -> list[pb.Transfer]:
    return list(house.stub.ListTransfers(pb.ListTransfersRequest(**values)).transfers)


def statement(
    house: House, merchant: str, since: datetime | None = None, until: datetime | None = None
) -> pb.GetStatementResponse:
    request = pb.GetStatementRequest(
        merchant_id=merchant, created_from=timestamp_from(since), created_before=timestamp_from(until)
    )
    return house.stub.GetStatement(request)


def held(balance: pb.MerchantBalance) -> tuple[Decimal, Decimal]:
    return Decimal(balance.available), Decimal(balance.reserved)


def added(start: tuple[Decimal, Decimal], moved: list[tuple[Any, str]]) -> tuple[Decimal, Decimal]:
    available, reserved = start
    for kind, amount in moved:
        signs = SIGNS[kind]
        available, reserved = available + signs[0] * Decimal(amount), reserved + signs[1] * Decimal(amount)
    return available, reserved


@pytest.fixture(scope="module")
def merchant(house: House) -> str:
    """Three months of credits and of withdrawals that end in each way, with transfers on the first moment of a month,
    and those of another merchant between them.
    """
    house.clock.set(MONTHS[0])
    merchant, other = house.credit("500"), house.credit("70")
    ends: list[Callable[[pb.Withdrawal], pb.Withdrawal]] = [house.complete, house.fail, house.cancel]
    for number, month in enumerate(MONTHS[:3]):
        house.clock.set(month)
        house.credit("0.000001", merchant)
        house.withdraw(other, "7")
        pending = [house.withdraw(merchant, f"{10 + number}.5") for _ in ends]
        for day, (end, withdrawal) in enumerate(zip(ends, pending, strict=True)):
            house.clock.set(month + timedelta(days=9 * day + 3))
            house.credit(f"{day}.25", merchant)
            end(withdrawal)
    house.withdraw(merchant, "20")
    return merchant


def in_pages(house: House, merchant: str, *, carries_balance: bool, **values: Any) -> Iterator[pb.Transfer]:
    after: dict[str, Any] = {}
    while page := transfers(house, merchant_id=merchant, with_balances=True, limit=4, **values, **after):
        yield from page
        after = {"after_transfer_id": page[-1].transfer_id}
        if carries_balance:
            after["after_balance"] = page[-1].after


def test_the_statements_of_all_months_are_the_ledger_and_end_with_the_balance(
    house: House, merchant: str
) -> None:
    seen: list[pb.Transfer] = []
    balance = NOTHING
    for since, until in pairwise(MONTHS):
        span = {"created_from": timestamp_from(since), "created_before": timestamp_from(until)}
        month = statement(house, merchant, since, until)
        listed = transfers(house, merchant_id=merchant, with_balances=True, **span)
        assert all(since <= datetime_from(each.created_at) < until for each in listed)
        assert held(month.opening) == balance
        for each in listed:
            balance = added(balance, [(each.kind, each.amount)])
            assert held(each.after) == balance
        assert held(month.closing) == balance
        assert added(held(month.opening), [(each.kind, each.amount) for each in month.sums]) == balance
        counted = {each.kind: each.count for each in month.sums}
        assert counted == {kind: sum(each.kind == kind for each in listed) for kind in counted}
        assert sum(counted.values()) == len(listed)
        seen += listed
    assert [usdt_text(each) for each in balance] == list(house.balance(merchant)[:2])
    in_ledger = house.execute(
        "SELECT transfers.id::text FROM transfers JOIN accounts ON accounts.id IN (debit_account, credit_account)"
        " WHERE merchant_id = %s GROUP BY transfers.id, transfers.created_at ORDER BY transfers.created_at, 1",
        merchant,
    )
    assert [each.transfer_id for each in seen] == [id for (id,) in in_ledger]
    assert {each.kind for each in seen} == set(SIGNS)
    assert {each.merchant_id for each in seen} == {merchant}


@pytest.mark.parametrize("carries_balance", [False, True])
def test_pages_of_a_statement_are_one_list_with_the_same_balances(
    house: House, merchant: str, carries_balance: bool
) -> None:
    span = {"created_from": timestamp_from(MONTHS[1])}
    whole = transfers(house, merchant_id=merchant, with_balances=True, **span)
    assert len(whole) > 12
    assert list(in_pages(house, merchant, carries_balance=carries_balance, **span)) == whole


def test_the_sums_without_bounds_are_those_of_the_whole_ledger(house: House, merchant: str) -> None:
    whole = statement(house, merchant)
    assert held(whole.opening) == NOTHING
    _, _, credited, withdrawn = house.balance(merchant)
    sums = {each.kind: Decimal(each.amount) for each in whole.sums}
    assert sums[CREDIT] == Decimal(credited)
    assert sums[PAY] + sums[FEE] == Decimal(withdrawn)


def test_the_transfers_of_an_invoice_and_of_a_withdrawal_are_found_by_their_ids(house: House) -> None:
    invoice = new_id()
    merchant = house.credit("50", invoice_id=invoice)
    (credit,) = transfers(house, invoice_id=str(invoice), with_balances=True)
    assert (credit.kind, credit.amount, credit.merchant_id) == (CREDIT, "50.000000", merchant)
    assert credit.invoice_id == str(invoice)
    assert credit.withdraw_uuid == ""
    made = house.withdraw(merchant, "20")
    house.credit("1", merchant)
    house.complete(made)
    (credit,) = transfers(house, invoice_id=str(invoice), with_balances=True)
    assert held(credit.after) == (Decimal(50), Decimal(0)), "the balance of its moment, not of now"
    steps = transfers(house, withdraw_uuid=made.withdraw_uuid)
    assert [(each.kind, each.amount) for each in steps] == [
        (RESERVE, "20.000000"),
        (PAY, "19.000000"),
        (FEE, "1.000000"),
    ]
    assert all(each.withdraw_uuid == made.withdraw_uuid and not each.HasField("after") for each in steps)
    of_both = {"merchant_id": str(uuid.uuid4()), "invoice_id": str(invoice)}
    assert transfers(house, **of_both) == []
    assert transfers(house, invoice_id=str(invoice), withdraw_uuid=made.withdraw_uuid) == []


def test_an_unknown_merchant_has_an_empty_statement(house: House) -> None:
    unknown = str(uuid.uuid4())
    assert transfers(house, merchant_id=unknown, with_balances=True) == []
    empty = statement(house, unknown)
    assert (held(empty.opening), held(empty.closing)) == (NOTHING, NOTHING)
    assert not empty.sums


def test_a_list_of_transfers_is_of_a_merchant_an_invoice_or_a_withdrawal(house: House) -> None:
    assert refusal(transfers, house) == ("VALIDATION_ERROR", {"field": "merchant_id"})


def test_a_transfer_of_another_merchant_is_no_place_in_a_list(house: House, merchant: str) -> None:
    """Else its answer would tell that the transfer is there."""
    theirs = transfers(house, merchant_id=merchant)[0].transfer_id
    for own in (str(new_id()), house.credit("1")):  # one has no transfer
        for after in (theirs, str(new_id())):
            refused = refusal(transfers, house, merchant_id=own, after_transfer_id=after)
            assert refused == ("VALIDATION_ERROR", {"field": "after_transfer_id"})


def test_a_statement_has_no_more_time_than_other_calls_of_people(house: House, merchant: str) -> None:
    """Payouts take turns with it; the check of the whole ledger may take longer."""
    limits: list[str] = []

    def note(connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("SET"):
            limits.append(statement)

    engine = house.deps.db._engine
    event.listen(engine, "before_cursor_execute", note)
    try:
        statement(house, merchant, MONTHS[1], MONTHS[2])
        transfers(house, merchant_id=merchant, with_balances=True)
        assert limits == []
        ledger.check_ledger(house.deps)
        assert limits == ["SET LOCAL statement_timeout = '60s'"]
    finally:
        event.remove(engine, "before_cursor_execute", note)


def closed(house: House) -> int:
    """Closes all days that are over; returns how many the ledger has."""
    at = days.Pass()
    for _ in range(1000):
        if not days.close_days(house.deps, at):
            return int(house.execute("SELECT count(*) FROM daily_balances")[0][0])
    raise AssertionError("there are always more days")


def test_balances_at_the_end_of_days_change_no_statement(
    house: House, merchant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(days, "ACCOUNTS", 3)
    invoice = new_id()
    house.clock.set(MONTHS[1] + timedelta(days=4, hours=7))
    house.credit("9.5", merchant, invoice_id=invoice)
    house.clock.set(MONTHS[3] + timedelta(hours=12))
    house.credit("2", merchant)

    whole: dict[str, Any] = {"merchant_id": merchant, "with_balances": True, "limit": 1000}

    def seen() -> list[Any]:
        moments = [None, *MONTHS, MONTHS[1] + timedelta(days=4, hours=7), MONTHS[3] + timedelta(hours=12)]
        return [
            transfers(house, **whole),
            transfers(house, invoice_id=str(invoice), with_balances=True),
            [transfers(house, created_from=timestamp_from(at), **whole)[:1] for at in moments],
            [statement(house, merchant, since, until) for since in moments for until in moments],
        ]

    house.execute("DELETE FROM daily_balances", url=house.admin_url)
    before = seen()
    of_ledger = closed(house)
    assert of_ledger > 20
    assert seen() == before
    # The day that is not over has none; a transfer of it counts, and the next day adds it.
    house.clock.advance(days=1)
    assert seen() == before
    assert closed(house) > of_ledger
    assert seen() == before
    assert house.check().problems == []

    change = (
        "UPDATE daily_balances SET balance = daily_balances.balance {} 1 FROM accounts"
        " WHERE accounts.id = account AND merchant_id = %s RETURNING account"
    )
    house.execute(change.format("+"), merchant, url=house.admin_url)
    assert seen() != before, "they are read"
    (problem, *_) = house.check().problems
    assert f"of merchant {merchant}) held" in problem
    assert "its transfers up to then add up to" in problem
    house.execute(change.format("-"), merchant, url=house.admin_url)
    assert house.check().problems == []


def test_a_month_names_the_credits_that_a_report_counts_in_another_one(house: House) -> None:
    second, minute = timedelta(seconds=1), timedelta(minutes=1)
    begin, end = MONTHS[1], MONTHS[2]
    house.clock.set(begin + second)
    merchant = house.credit("5", paid_at=begin - second)
    house.credit("7", merchant, paid_at=begin)
    house.clock.set(end - minute)
    house.credit("11", merchant)
    house.clock.set(end + timedelta(days=2))
    house.credit("13", merchant, paid_at=end - second)
    house.credit("17", merchant, paid_at=end)
    house.credit("19", paid_at=end - second)  # another merchant's

    found = statement(house, merchant, begin, end)
    (credits,) = found.sums
    crossing = found.crossing
    assert (credits.amount, crossing.credited, crossing.paid) == ("23.000000", "5.000000", "13.000000")
    assert [each.amount for each in crossing.credits] == ["5.000000", "13.000000"]
    assert datetime_from(crossing.credits[0].paid_at) == begin - second
    assert datetime_from(crossing.credits[0].credited_at) == begin + second
    paid_in_the_month = Decimal(credits.amount) - Decimal(crossing.credited) + Decimal(crossing.paid)
    assert paid_in_the_month == 7 + 11 + 13
    before = statement(house, merchant, MONTHS[0], begin)
    assert (list(before.sums), before.crossing.paid, before.crossing.credited) == ([], "5.000000", "0.000000")
    whole = statement(house, merchant).crossing
    assert (whole.paid, whole.credited, len(whole.credits)) == ("0.000000", "0.000000", 0)
