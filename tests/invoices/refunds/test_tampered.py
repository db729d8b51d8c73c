"""Refunds that SQL made or changed: none is sent, and `fiatgate verify` names each."""

from typing import Any

import pytest

from kit.base.ids import new_id
from services.withdrawals.domain import RefundStatus
from services.withdrawals.store import books
from services.withdrawals.store import refunds as store
from tests.invoices.refunds.conftest import CANCELED, FAILED, READY, SENT, SUCCEEDED, Till
from tests.support.acting import CID, acting, refusal
from tests.withdrawals.test_checks import problems, tampered

# -- what SQL writes


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ("account = 'GB82WEST12345698765432'", {SENT}),
        ("refund_amount = 2000", {SENT}),
        ("status = 'sent', bank_reference = 'x'", {SUCCEEDED}),
        ("origin = 'late', amount = 0, case_number = 1", {SENT}),
        ("created_at = now() - interval '40 days'", {SENT}),
    ],
)
def test_what_sql_changed_is_found_and_not_sent(till: Till, change: str, refused: set[RefundStatus]) -> None:
    made = till.reached(READY)
    columns = [each.split(" = ")[0].strip() for each in change.split(", ")]
    (was,) = till.house.execute(
        f"SELECT {', '.join(f'quote_nullable({each})' for each in columns)} FROM refunds WHERE id = %s",
        str(made.id),
    )
    undo = ", ".join(f"{name} = {value}" for name, value in zip(columns, was, strict=True))
    update = "UPDATE refunds SET {} WHERE id = %s"
    with tampered(till.house, update.format(change), str(made.id), undo=update.format(undo)):
        for target in refused:
            assert refusal(acting, CID, till.step(target, made)).reason == "NOT_DECIDED"
        found = differences(till)
        assert {each for each, *_ in found} == {str(made.id)}
        assert {name for _, name, *_ in found} == set(columns)
    assert not differences(till)
    assert acting(CID, till.step(CANCELED, made)).status is CANCELED


def differences(till: Till) -> list[Any]:
    """Returns the problems of refunds that `fiatgate verify` finds."""
    (part,) = [each for each in books.PARTS if each.name == "refunds"]
    first, last = "0" * 8 + "-0000-0000-0000-" + "0" * 12, "f" * 8 + "-ffff-ffff-ffff-" + "f" * 12
    with till.house.deps.db.transaction() as tx:
        return [each for follows in part.follows if callable(follows) for each in follows(tx, first, last)]


def test_a_transfer_at_another_time_than_its_step_is_told(till: Till) -> None:
    made = acting(CID, till.step(FAILED, till.reached(SENT)))
    till.reverse(till.invoice(), "1")
    (correction,) = till.house.execute("SELECT id FROM corrections ORDER BY created_at DESC, id DESC LIMIT 1")
    for reference in (
        f"refund:{made.id}:reserve",
        f"refund:{made.id}:release",
        f"correction:{correction[0]}",
    ):
        move = "UPDATE transfers SET created_at = created_at {} interval '2 seconds' WHERE reference = %s"
        with tampered(till.house, move.format("-"), reference, undo=move.format("+")):
            told = problems(till.house)
            assert f"Transfer {reference} has another time than the step that it belongs to." in told, told
    assert problems(till.house) == []


def test_one_that_sql_adds_is_not_sent_and_is_told(till: Till) -> None:
    id, invoice = new_id(), till.invoice()
    till.house.execute(
        "INSERT INTO refunds (id, merchant_id, invoice_id, external_id, origin, refund_amount, currency_code, amount,"
        " conversion_rate, reason, status, account_kind, account, holder, account_by_customer, created_at, updated_at)"
        " VALUES (%s, %s, %s, 'x', 'credited', 20, 'EUR', 21, 0.92, '', 'ready', 'free', 'x', 'x', false, now(),"
        " now())",
        str(id),
        till.merchant_id,
        invoice,
    )
    with till.house.deps.db.transaction() as tx:
        forged = store.refund(tx, id)
    assert forged is not None
    assert refusal(acting, CID, till.step(SENT, forged)).reason == "NOT_DECIDED"
    assert problems(till.house) == [f"Transfer refund:{id}:reserve of 21.000000 is missing."]
    assert [each[:2] for each in differences(till)] == [(str(id), "act")]
    past_all = "SET session_replication_role = replica; DELETE FROM refunds WHERE id = %s"
    till.house.execute(past_all, str(id), url=till.house.admin_url)


FORGED = """INSERT INTO corrections (id, kind, merchant_id, invoice_id, amount, owed, received_amount, currency_code,
conversion_rate, reason, evidence, request_key, created_at)
VALUES (%s, 'surplus', %s, %s, 1, 0, 800, 'EUR', 0.92, 'x', 'x', %s, now())"""


def test_a_correction_that_sql_adds_counts_for_no_refund(till: Till) -> None:
    id, invoice = str(new_id()), till.invoice()
    made = till.ask(invoice, "20.00")
    till.house.execute(FORGED, id, till.merchant_id, invoice, id)
    for step in (
        till.asking(invoice, "810.00"),
        till.asking(invoice, "10.00"),
        till.step(SENT, made),
        till.reversing(invoice, "10"),
    ):
        assert refusal(acting, CID, step).reason == "NOT_DECIDED"
    past_all = "SET session_replication_role = replica; DELETE FROM corrections WHERE id = %s"
    till.house.execute(past_all, id, url=till.house.admin_url)
    assert acting(CID, till.step(SENT, made)).status is SENT


@pytest.mark.parametrize(
    ("status", "missing"),
    [
        ("status = 'succeeded', bank_reference = 'x', finished_at = now()", "pay"),
        ("status = 'failed', failure = 'x', finished_at = now()", "release"),
        ("status = 'canceled', finished_at = now()", "release"),
    ],
)
def test_an_end_that_moved_no_money_is_told(till: Till, status: str, missing: str) -> None:
    made = till.reached(READY)
    undo = "status = 'ready', bank_reference = NULL, failure = NULL, finished_at = NULL"
    update = "UPDATE refunds SET {} WHERE id = %s"
    with tampered(till.house, update.format(status), str(made.id), undo=update.format(undo)):
        assert problems(till.house) == [f"Transfer refund:{made.id}:{missing} of 21.739131 is missing."]
    with tampered(
        till.house,
        "UPDATE refunds SET amount = amount + 1 WHERE id = %s",
        str(made.id),
        undo="UPDATE refunds SET amount = amount - 1 WHERE id = %s",
    ):
        (told,) = problems(till.house)
        assert told.startswith(f"Transfer refund:{made.id}:reserve moved 21.739131 where 22.739131 were due")
    acting(CID, till.step(CANCELED, made))


def test_one_payment_of_the_bank_at_two_refunds_is_told(till: Till) -> None:
    first, second = (till.reached(SENT) for _ in range(2))
    for statement in (
        "DROP INDEX uq_refunds_bank_reference",
        f"UPDATE refunds SET bank_reference = 'BR-{first.id}' WHERE id = '{second.id}'",
    ):
        till.house.execute(statement, url=till.house.admin_url)
    assert problems(till.house) == [
        f"The payment of reference BR-{first.id} has paid refund {first.id} and refund {second.id}, and pays one."
    ]
    for statement in (
        f"UPDATE refunds SET bank_reference = 'BR-{second.id}' WHERE id = '{second.id}'",
        "CREATE UNIQUE INDEX uq_refunds_bank_reference ON refunds (translate(lower(bank_reference), ' -./_:', ''))"
        " WHERE status IN ('sent', 'succeeded')",
    ):
        till.house.execute(statement, url=till.house.admin_url)
