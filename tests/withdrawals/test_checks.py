"""CheckLedger finds what a bug, or a hand in the database, has done to the books."""

import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from deploy.local.waiting import wait_until
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from kit.observe.metrics import REGISTRY
from kit.work.worker import Stop
from services.withdrawals.store import checks
from services.withdrawals.workers import ledger_check
from tests.withdrawals.conftest import House


@pytest.fixture(autouse=True)
def _right_before_and_after(house: House) -> Iterator[None]:
    assert list(house.check().problems) == []
    yield
    assert list(house.check().problems) == []


@contextmanager
def tampered(house: House, statement: str, *values: object, undo: str) -> Iterator[None]:
    """As a superuser past all triggers and grants."""
    past_all = "SET session_replication_role = replica; "
    house.execute(past_all + statement, *values, url=house.admin_url)
    yield
    house.execute(past_all + undo, *values, url=house.admin_url)


def watched(house: House) -> float | None:
    """How many problems the metrics tell of, once the worker has proved the ledger anew."""
    before = REGISTRY.get_sample_value("fiatgate_ledger_checked_timestamp_seconds")
    house.clock.advance(seconds=1)
    stop = Stop()
    thread = threading.Thread(target=ledger_check(house.deps).run, args=(stop,))
    thread.start()
    wait_until(
        lambda: REGISTRY.get_sample_value("fiatgate_ledger_checked_timestamp_seconds") != before,
        "a check",
        timeout_seconds=15,
    )
    stop.set()
    thread.join(10)
    return REGISTRY.get_sample_value("fiatgate_ledger_problems")


def test_the_metrics_tell_of_a_wrong_ledger_before_anybody_asks(house: House) -> None:
    merchant = house.credit("5")
    change = (
        "UPDATE accounts SET balance = balance {} 1 WHERE merchant_id = %s AND kind = 'merchant_available'"
    )
    with tampered(house, change.format("+"), merchant, undo=change.format("-")):
        assert watched(house) == 2
    assert watched(house) == 0


def problems(house: House) -> list[str]:
    return list(house.check().problems)


def test_a_balance_that_is_not_the_sum_of_its_transfers_is_told(house: House) -> None:
    merchant = house.credit("5")
    change = (
        "UPDATE accounts SET balance = balance {} 1 WHERE merchant_id = %s AND kind = 'merchant_available'"
    )
    with tampered(house, change.format("+"), merchant, undo=change.format("-")):
        report = house.check()
        assert report.sum == "1.000000"
        assert report.problems[0] == "All accounts together hold 1.000000, not zero."
        assert f"merchant_available of merchant {merchant}" in report.problems[1]
        assert report.problems[1].endswith("holds 6.000000, its transfers add up to 5.000000.")
        assert len(report.problems) == 2


@pytest.mark.parametrize(
    ("status", "others", "missing", "surplus"),
    [
        ("success", "external_tx_id = 'x', processed_at = now()", ["fee", "pay"], []),
        ("failed", "substatus = 'failed', processed_at = now()", ["release"], []),
        ("cancelled", "substatus = 'cancelled_by_user', processed_at = now()", ["release"], []),
    ],
)
def test_a_withdrawal_whose_status_moved_no_money_is_told(
    house: House, status: str, others: str, missing: list[str], surplus: list[str]
) -> None:
    made = house.withdraw(house.credit("100"))
    undo = (
        "UPDATE withdrawals SET status = 'pending', substatus = NULL, external_tx_id = NULL, processed_at = NULL"
        " WHERE id = %s"
    )
    statement = f"UPDATE withdrawals SET status = '{status}', {others} WHERE id = %s"
    with tampered(house, statement, made.withdraw_uuid, undo=undo):
        told = problems(house)
    assert len(told) == len(missing)
    for step, problem in zip(missing, sorted(told), strict=True):
        assert problem.startswith(f"Transfer withdrawal:{made.withdraw_uuid}:{step} of ")
        assert problem.endswith("is missing.")


def test_a_transfer_that_no_status_explains_is_told(house: House) -> None:
    made = house.fail(house.withdraw(house.credit("100"), "10"))
    undo = "UPDATE withdrawals SET status = 'failed', substatus = 'failed', processed_at = updated_at WHERE id = %s"
    statement = (
        "UPDATE withdrawals SET status = 'pending', substatus = NULL, processed_at = NULL WHERE id = %s"
    )
    with tampered(house, statement, made.withdraw_uuid, undo=undo):
        assert problems(house) == [
            f"Transfer withdrawal:{made.withdraw_uuid}:release of 10.000000 fits no withdrawal's status."
        ]


def test_a_transfer_of_another_amount_than_the_withdrawals_is_told(house: House) -> None:
    made = house.withdraw(house.credit("100"), "10")
    statement = "UPDATE withdrawals SET amount = amount {} 1 WHERE id = %s"
    with tampered(house, statement.format("+"), made.withdraw_uuid, undo=statement.format("-")):
        (told,) = problems(house)
    assert told.startswith(
        f"Transfer withdrawal:{made.withdraw_uuid}:reserve moved 10.000000 where 11.000000"
    )


def test_a_transfer_between_anothers_accounts_is_told(house: House) -> None:
    made = house.withdraw(house.credit("100"), "10")
    other = str(uuid.uuid4())
    statement = "UPDATE withdrawals SET merchant_id = '{}' WHERE id = %s"
    undo = statement.format(made.merchant_id)
    with tampered(house, statement.format(other), made.withdraw_uuid, undo=undo):
        (told,) = problems(house)
    assert told.startswith(f"Transfer withdrawal:{made.withdraw_uuid}:reserve moved")


def test_a_credit_from_elsewhere_than_settlement_is_told(house: House) -> None:
    merchant = house.credit("5")
    reference = house.execute(
        "SELECT reference FROM transfers JOIN accounts ON accounts.id = credit_account WHERE merchant_id = %s",
        merchant,
    )[0][0]
    statement = "UPDATE transfers SET debit_account = (SELECT id FROM accounts WHERE kind = '{}') WHERE reference = %s"
    with tampered(house, statement.format("fees"), reference, undo=statement.format("settlement")):
        assert problems(house) == [
            f"Transfer {reference} goes from fees to merchant_available, not from settlement to a merchant."
        ]


def test_a_transfer_of_an_unknown_withdrawal_is_told_once(house: House) -> None:
    reserve = f"withdrawal:{house.withdraw(house.credit('100'), '10').withdraw_uuid}:reserve"
    asked = "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = 'ck_transfers_reference'"
    ((rule,),) = house.execute(asked, url=house.admin_url)
    dropped = "ALTER TABLE transfers DROP CONSTRAINT ck_transfers_reference; "
    kept = f"ALTER TABLE transfers ADD CONSTRAINT ck_transfers_reference {rule}"
    change = "UPDATE transfers SET reference = %s WHERE reference = %s; "
    past_all = "SET session_replication_role = replica; "
    house.execute(past_all + dropped + change + "SELECT 1", "withdrawal:x", reserve, url=house.admin_url)
    found = problems(house)
    house.execute(past_all + change + kept + "; SELECT 1", reserve, "withdrawal:x", url=house.admin_url)
    assert found == [
        f"Transfer {reserve} of 10.000000 is missing.",
        "Transfer withdrawal:x of 10.000000 fits no withdrawal's status.",
    ]


def test_a_transfer_that_is_no_credit_ends_no_page_of_credits(house: House) -> None:
    first, wrong, last = (new_id() for _ in range(3))
    for invoice_id in (first, wrong, last):
        house.credit("5", invoice_id=invoice_id)
    other = "UPDATE transfers SET credit_account = debit_account, debit_account = credit_account WHERE reference = %s"
    with tampered(house, other, f"invoice:{wrong}", undo=other):
        page = house.stub.ListCredits(pb.ListCreditsRequest(after_invoice_id=str(first), limit=1)).credits
    assert [credit.invoice_id for credit in page] == [str(last)]


def test_all_checks_see_the_database_of_one_moment(house: House) -> None:
    with house.deps.db.transaction() as tx:
        checks.begin_snapshot(tx)
        before = checks.totals(tx)
        house.credit("5")
        assert checks.totals(tx) == before
    assert house.check().transfers == before.transfers + 1


def test_many_problems_of_one_kind_hide_none_of_another(house: House) -> None:
    merchants = [house.credit("1") for _ in range(101)]
    change = (
        "UPDATE accounts SET balance = balance {} 1"
        " WHERE merchant_id = ANY(%s::uuid[]) AND kind = 'merchant_available'"
    )
    with tampered(house, change.format("+"), merchants, undo=change.format("-")):
        found = problems(house)
    assert len(found) == 22
    assert found[-1] == "80 or more like the last are left out."
