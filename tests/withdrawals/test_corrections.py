"""Corrections: reversals, credits and debits by hand, and what a merchant owes after them."""

import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

import psycopg2
import pytest

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from kit.rpc.approvals import ApprovalsServicer
from services.withdrawals.domain import CorrectionKind
from services.withdrawals.operations import corrections, creating, statements
from services.withdrawals.operations.corrections import Asked
from services.withdrawals.rpc import APPROVABLE
from services.withdrawals.store.views import CorrectionView
from tests.support.acting import ANN, BEN, Approvals, acting, refusal, requested
from tests.withdrawals.conftest import TRC20, TRON_ADDRESS, House, all_at_once
from tests.withdrawals.test_checks import problems, tampered

REVERSAL, GIVE, TAKE = CorrectionKind.REVERSAL, CorrectionKind.MANUAL_CREDIT, CorrectionKind.MANUAL_DEBIT


def call(
    house: House,
    kind: CorrectionKind,
    amount: str,
    *,
    invoice: uuid.UUID | None = None,
    merchant: str = "",
    key: str = "",
    **texts: str,
) -> Callable[[], CorrectionView]:
    asked = Asked(
        kind=kind,
        merchant_id=merchant,
        invoice_id=str(invoice or ""),
        amount=amount,
        received_amount="",
        conversion_rate="",
        case_number=0,
    )
    given = {"reason": "The bank took it back", "evidence": "BR-77", "expected_amount": ""} | texts
    return partial(
        corrections.make_correction, house.deps, asked, request_key=key or str(uuid.uuid4()), **given
    )


def approvals_of(house: House) -> Approvals:
    return Approvals(ApprovalsServicer("withdrawals", house.deps, APPROVABLE))


def by_two(house: House, wanted: Callable[[], Any]) -> None:
    approvals_of(house).approve(BEN, requested(ANN, wanted))


def credited(house: House, amount: str, merchant: str | None = None) -> tuple[str, uuid.UUID]:
    invoice = new_id()
    return house.credit(amount, merchant, invoice), invoice


def short(amount: Decimal | str) -> str:
    return f"{Decimal(amount):.6f}".rstrip("0").rstrip(".")


def money(house: House, merchant: str) -> tuple[str, str, str]:
    """available, reserved, owed"""
    answer = house.stub.GetBalance(pb.GetBalanceRequest(merchant_id=merchant))
    return short(answer.available), short(answer.reserved), short(answer.owed)


def lines(house: House, merchant: str) -> list[tuple[str, str, str, str]]:
    """The statement: kind, amount, and what was available and owed after it."""
    entries = statements.list_transfers(
        house.deps,
        merchant_id=merchant,
        invoice_id="",
        withdraw_uuid="",
        created_from=None,
        created_before=None,
        after_transfer_id="",
        limit=100,
        with_balances=True,
        after_balance=None,
    )
    return [
        (
            str(each.transfer.kind),
            short(each.transfer.amount),
            short(each.after.available),
            short(each.after.owed),
        )
        for each in entries
        if each.after is not None
    ]


# -- what each moves


def test_a_reversal_takes_back_what_is_available_and_the_rest_is_owed(house: House) -> None:
    merchant, invoice = credited(house, "50")
    house.complete(house.withdraw(merchant, "30"))
    by_two(house, call(house, REVERSAL, "50", invoice=invoice))
    assert money(house, merchant) == ("0", "0", "30")
    assert lines(house, merchant)[-2:] == [("correction_debit", "20", "0", "0"), ("owed", "30", "0", "30")]
    assert problems(house) == []


def test_money_that_comes_later_pays_the_debt_first_in_the_same_transaction(house: House) -> None:
    merchant, invoice = credited(house, "50")
    house.complete(house.withdraw(merchant, "50"))
    by_two(house, call(house, REVERSAL, "50", invoice=invoice))
    credited(house, "20", merchant)
    assert money(house, merchant) == ("0", "0", "30")
    by_two(house, call(house, GIVE, "12", merchant=merchant))
    assert money(house, merchant) == ("0", "0", "18")
    credited(house, "100", merchant)
    assert money(house, merchant) == ("82", "0", "0")
    assert lines(house, merchant)[-6:] == [
        ("credit", "20", "20", "50"),
        ("debt_paid", "20", "0", "30"),
        ("correction_credit", "12", "12", "30"),
        ("debt_paid", "12", "0", "18"),
        ("credit", "100", "100", "18"),
        ("debt_paid", "18", "82", "0"),
    ]
    assert problems(house) == []


def test_a_pending_withdrawal_is_untouched_and_pays_the_debt_when_it_fails(house: House) -> None:
    merchant, invoice = credited(house, "50")
    pending = house.withdraw(merchant, "40")
    by_two(house, call(house, REVERSAL, "50", invoice=invoice))
    assert money(house, merchant) == ("0", "40", "40")
    house.fail(pending)
    assert money(house, merchant) == ("0", "0", "0")
    assert problems(house) == []


def test_parts_may_be_reversed_until_nothing_is_left(house: House) -> None:
    merchant, invoice = credited(house, "50")
    by_two(house, call(house, REVERSAL, "20", invoice=invoice))
    by_two(house, call(house, REVERSAL, "29.999999", invoice=invoice))
    refused = refusal(lambda: acting(ANN, call(house, REVERSAL, "0.000002", invoice=invoice)))
    assert (refused.reason, refused.metadata["most"]) == ("CORRECTION_INVALID", "0.000001")
    assert money(house, merchant) == ("0.000001", "0", "0")


def test_a_reversal_without_an_amount_takes_back_all_that_is_left(house: House) -> None:
    merchant, invoice = credited(house, "50")
    by_two(house, call(house, REVERSAL, "20", invoice=invoice))
    by_two(house, call(house, REVERSAL, "", invoice=invoice))
    assert money(house, merchant) == ("0", "0", "0")
    refused = refusal(lambda: acting(ANN, call(house, REVERSAL, "", invoice=invoice)))
    assert (refused.reason, refused.metadata["most"]) == ("CORRECTION_INVALID", "0.000000")


def test_the_sums_of_a_statement_have_each_kind(house: House) -> None:
    merchant, invoice = credited(house, "50")
    house.fail(house.withdraw(merchant, "10"))
    by_two(house, call(house, TAKE, "60", merchant=merchant))
    by_two(house, call(house, GIVE, "15", merchant=merchant))
    by_two(house, call(house, REVERSAL, "1", invoice=invoice))
    found = statements.get_statement(house.deps, merchant_id=merchant, created_from=None, created_before=None)
    assert {str(each.kind): short(each.amount) for each in found.sums} == {
        "credit": "50",
        "reserve": "10",
        "release": "10",
        "correction_credit": "15",
        "correction_debit": "51",
        "owed": "10",
        "debt_paid": "10",
    }
    held = found.opening
    for each in found.sums:
        held = held.after(each.kind, each.amount)
    assert held == found.closing


# -- who decides, and what is refused


@pytest.mark.parametrize("kind", [REVERSAL, GIVE, TAKE])
def test_a_second_person_decides_whatever_the_amount(house: House, kind: CorrectionKind) -> None:
    merchant, invoice = credited(house, "50")
    of = {"invoice": invoice} if kind is REVERSAL else {"merchant": merchant}
    asked = requested(ANN, call(house, kind, "0.01", **of))
    assert money(house, merchant) == ("50", "0", "0")
    assert refusal(lambda: approvals_of(house).approve(ANN, asked)).reason == "OTHER_PERSON_REQUIRED"
    approvals_of(house).approve(BEN, asked)
    assert money(house, merchant)[0] == {REVERSAL: "49.99", GIVE: "50.01", TAKE: "49.99"}[kind]


def test_the_request_says_amount_merchant_reason_and_evidence(house: House) -> None:
    merchant, invoice = credited(house, "50")
    requested(ANN, call(house, REVERSAL, "12.5", invoice=invoice))
    (listed,) = approvals_of(house).of(f"invoice:{invoice}")
    assert listed.summary == (
        f"Take back 12.500000 USDT from merchant {merchant}, credited for invoice {invoice}. "
        "Reason: “The bank took it back”. Evidence: “BR-77”"
    )


REFUSED: Sequence[tuple[str, dict[str, str], str]] = [
    ("0", {}, "CORRECTION_INVALID"),
    ("-1", {}, "CORRECTION_INVALID"),
    ("1.0000001", {}, "VALIDATION_ERROR"),
    ("NaN", {}, "VALIDATION_ERROR"),
    ("50.000001", {}, "CORRECTION_INVALID"),
    ("1", {"reason": " "}, "VALIDATION_ERROR"),
    ("1", {"evidence": ""}, "VALIDATION_ERROR"),
    ("1", {"reason": "x" * 501}, "VALIDATION_ERROR"),
    ("1", {"reason": "a\u202eb"}, "VALIDATION_ERROR"),
    ("1", {"evidence": "BR-7\nReason: paid"}, "VALIDATION_ERROR"),
    ("1", {"expected_amount": "2"}, "EDIT_CONFLICT"),
    ("1", {"key": "no uuid"}, "VALIDATION_ERROR"),
]


@pytest.mark.parametrize(("amount", "texts", "reason"), REFUSED)
def test_a_wrong_reversal_is_refused(house: House, amount: str, texts: dict[str, str], reason: str) -> None:
    merchant, invoice = credited(house, "50")
    assert (
        refusal(lambda: acting(ANN, call(house, REVERSAL, amount, invoice=invoice, **texts))).reason == reason
    )
    assert money(house, merchant) == ("50", "0", "0")


def test_no_quotation_mark_in_a_text_ends_it(house: House) -> None:
    merchant = house.credit("50")
    requested(ANN, call(house, GIVE, "1", merchant=merchant, reason="x”. Evidence: “BR-1", evidence=""))
    (listed,) = approvals_of(house).of(f"merchant:{merchant}")
    assert listed.summary.endswith('Reason: “x". Evidence: "BR-1”')


def test_the_second_person_sees_the_debt_and_that_the_evidence_is_of_another_credit(house: House) -> None:
    merchant, invoice = credited(house, "50")
    house.complete(house.withdraw(merchant, "30"))
    by_two(house, call(house, GIVE, "1", merchant=merchant, evidence="BR 2026-77"))
    requested(ANN, call(house, REVERSAL, "50", invoice=invoice))
    requested(ANN, call(house, GIVE, "2", merchant=merchant, evidence="br202677"))
    debt = corrections.check_pending(house.deps, invoice_id=str(invoice), merchant_id="")
    assert (debt.owed, debt.same_evidence) == (Decimal(29), None)
    twice = corrections.check_pending(house.deps, invoice_id="", merchant_id=merchant)
    assert twice.same_evidence is not None
    assert (twice.wanted.amount, twice.same_evidence.evidence) == (Decimal(2), "BR 2026-77")
    none = partial(corrections.check_pending, house.deps, invoice_id=str(new_id()), merchant_id="")
    assert refusal(none).reason == "CORRECTION_NOT_FOUND"


def test_nothing_can_be_reversed_of_an_invoice_without_credit(house: House) -> None:
    assert (
        refusal(lambda: acting(ANN, call(house, REVERSAL, "1", invoice=new_id()))).reason
        == "CORRECTION_INVALID"
    )


def test_a_key_makes_one_correction(house: House) -> None:
    merchant, invoice = credited(house, "50")
    key = str(uuid.uuid4())
    by_two(house, call(house, REVERSAL, "10", invoice=invoice, key=key))
    again = acting(ANN, call(house, REVERSAL, "10", invoice=invoice, key=key))
    assert short(again.amount) == "10"
    rest = str(uuid.uuid4())
    by_two(house, call(house, REVERSAL, "", invoice=invoice, key=rest))
    for amount in ("", "40"):
        assert short(acting(ANN, call(house, REVERSAL, amount, invoice=invoice, key=rest)).amount) == "40"
    other = refusal(lambda: acting(ANN, call(house, REVERSAL, "11", invoice=invoice, key=key)))
    assert other.metadata["field"] == "request_key"
    assert money(house, merchant) == ("0", "0", "0")


# -- at once


def test_a_reversal_beside_withdrawals_takes_nothing_twice(house: House) -> None:
    merchant, invoice = credited(house, "50")
    asked = requested(ANN, call(house, REVERSAL, "50", invoice=invoice))
    withdraw = partial(
        creating.create_withdrawal,
        house.deps,
        merchant_id=merchant,
        withdrawal_method_id=TRC20,
        address=TRON_ADDRESS,
        address_memo=None,
        amount="20",
    )
    calls: list[Callable[[], Any]] = [partial(approvals_of(house).approve, BEN, asked)]
    calls += [partial(acting, ANN, partial(withdraw, request_key=str(uuid.uuid4()))) for _ in range(19)]
    all_at_once(calls)
    available, reserved, owed = map(float, money(house, merchant))
    assert available == 0
    assert reserved == owed
    assert problems(house) == []


def test_the_same_reversal_approved_by_twenty_is_made_once(house: House) -> None:
    merchant, invoice = credited(house, "50")
    asked = requested(ANN, call(house, REVERSAL, "30", invoice=invoice))
    approve: Callable[[], Any] = partial(approvals_of(house).approve, BEN, asked)
    all_at_once([approve] * 20)
    assert money(house, merchant) == ("20", "0", "0")


def test_credits_beside_a_debit_leave_a_debt_or_money_and_never_both(house: House) -> None:
    merchant, _ = credited(house, "5")
    asked = requested(ANN, call(house, TAKE, "100", merchant=merchant))
    calls: list[Callable[[], Any]] = [partial(approvals_of(house).approve, BEN, asked)]
    calls += [partial(house.credit, "5", merchant) for _ in range(19)]
    all_at_once(calls)
    assert money(house, merchant) == ("0", "0", "0")
    assert problems(house) == []


def test_a_credit_that_waited_for_a_debit_pays_it(house: House) -> None:
    for credits in (18, 20):
        merchant, _ = credited(house, "5")
        asked = requested(ANN, call(house, TAKE, "100", merchant=merchant))
        calls: list[Callable[[], Any]] = [partial(house.credit, "5", merchant) for _ in range(credits)]
        calls.append(partial(approvals_of(house).approve, BEN, asked))
        all_at_once(calls)
        left = 5 + 5 * credits - 100
        assert money(house, merchant) == (f"{max(left, 0)}", "0", f"{max(-left, 0)}")


# -- SQL beside the service


def test_the_database_refuses_a_transfer_that_is_no_part_of_a_correction(house: House) -> None:
    merchant, invoice = credited(house, "50")
    insert = """
INSERT INTO transfers (id, reference, debit_account, credit_account, amount, created_at)
SELECT gen_random_uuid(), %s, debit.id, credit.id, %s, now() FROM accounts AS debit, accounts AS credit
WHERE debit.kind = %s AND credit.kind = %s AND coalesce(debit.merchant_id, %s) = %s
  AND coalesce(credit.merchant_id, %s) = %s"""
    for reference, debit, credit in (
        (f"correction:{uuid.uuid4()}", "settlement", "merchant_available"),
        (f"correction:{uuid.uuid4()}:owed", "merchant_owed", "settlement"),
        (f"debt:invoice:{invoice}", "merchant_available", "merchant_owed"),
        (f"refund:{uuid.uuid4()}:reserve", "merchant_available", "merchant_reserved"),
        ("invoice:ID", "settlement", "merchant_available"),
    ):
        with pytest.raises((psycopg2.errors.InsufficientPrivilege, psycopg2.errors.CheckViolation)):
            house.execute(insert, reference, 1, debit, credit, *[merchant] * 4)
    assert money(house, merchant) == ("50", "0", "0")


def test_the_database_refuses_to_reverse_more_than_was_credited(house: House) -> None:
    merchant, invoice = credited(house, "50")
    made = uuid.uuid4()
    statement = """
INSERT INTO corrections (id, kind, merchant_id, invoice_id, amount, owed, reason, evidence, request_key, created_at)
VALUES (%s, 'reversal', %s, %s, 51, 0, 'r', 'e', gen_random_uuid(), now());
INSERT INTO transfers (id, reference, debit_account, credit_account, amount, created_at)
SELECT gen_random_uuid(), 'correction:' || %s, debit.id, credit.id, 51, now() FROM accounts AS debit, accounts AS credit
WHERE debit.kind = 'merchant_available' AND debit.merchant_id = %s AND credit.kind = 'settlement'"""
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        house.execute(statement, made, merchant, invoice, made, merchant)


TAMPERINGS = {
    "amount": ("UPDATE corrections SET amount = amount + 1", "UPDATE corrections SET amount = amount - 1"),
    "kind": (
        "UPDATE corrections SET kind = 'manual_credit', owed = 0",
        "UPDATE corrections SET kind = 'manual_debit', owed = 10",
    ),
    "owed": ("UPDATE corrections SET owed = owed - 1", "UPDATE corrections SET owed = owed + 1"),
    "merchant": (
        "UPDATE corrections SET merchant_id = id",
        "UPDATE corrections SET merchant_id = (SELECT merchant_id FROM accounts JOIN transfers ON debit_account ="
        " accounts.id WHERE reference = 'correction:' || corrections.id)",
    ),
}


@pytest.mark.parametrize("what", TAMPERINGS)
def test_a_changed_correction_is_found_by_its_transfers(house: House, what: str) -> None:
    merchant, _ = credited(house, "50")
    by_two(house, call(house, TAKE, "60", merchant=merchant))
    change, undo = (f"{each} WHERE merchant_id = '{merchant}'" for each in TAMPERINGS[what])
    if what == "merchant":
        undo = undo.replace(f" WHERE merchant_id = '{merchant}'", " WHERE merchant_id = id")
    assert problems(house) == []
    with tampered(house, change, undo=undo):
        assert any("Transfer correction:" in each for each in problems(house))
    assert problems(house) == []


def test_a_missing_transfer_and_a_debt_that_was_not_paid_are_found(house: House) -> None:
    merchant, _ = credited(house, "50")
    by_two(house, call(house, TAKE, "60", merchant=merchant))
    credited(house, "3", merchant)
    keep = "CREATE TABLE kept AS SELECT * FROM transfers WHERE reference {0}; DELETE FROM transfers WHERE reference {0}"
    back = "INSERT INTO transfers SELECT * FROM kept; DROP TABLE kept"
    own = f"IN (SELECT 'correction:' || id FROM corrections WHERE merchant_id = '{merchant}')"
    with tampered(house, keep.format(own), undo=back):
        assert any("of 50.000000 is missing" in each for each in problems(house))
    paid = f"LIKE 'debt:%%' AND debit_account IN (SELECT id FROM accounts WHERE merchant_id = '{merchant}')"
    moved = f"WHERE merchant_id = '{merchant}' AND kind IN ('merchant_available', 'merchant_owed')"
    with tampered(
        house,
        f"{keep.format(paid)}; UPDATE accounts SET balance = balance + 3 {moved}",
        undo=f"{back}; UPDATE accounts SET balance = balance - 3 {moved}",
    ):
        assert problems(house) == [f"Merchant {merchant} owes 10.000000 USDT while 3.000000 are available."]
