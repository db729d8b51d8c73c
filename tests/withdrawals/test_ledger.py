"""The ledger: what the database itself refuses, what many at once can do to it, and any order of events."""

import secrets
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial

import psycopg2.errors
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.ids import new_id
from kit.base.money import usdt_text
from kit.rpc.errors import Refused
from services.withdrawals.operations.ledger import CreditDiffers
from tests.support.databases import past_all_rules
from tests.withdrawals.conftest import House, all_at_once

PENDING, SUCCESS = pb.WITHDRAWAL_STATUS_PENDING, pb.WITHDRAWAL_STATUS_SUCCESS


def reasons(outcomes: list[pb.Withdrawal | Refused]) -> list[str]:
    return sorted(each.reason for each in outcomes if isinstance(each, Refused))


def answers(outcomes: list[pb.Withdrawal | Refused]) -> list[pb.Withdrawal]:
    return [each for each in outcomes if isinstance(each, pb.Withdrawal)]


# -- what the database refuses, whoever asks


@pytest.mark.parametrize("superuser", [False, True])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE transfers SET amount = 1",
        "UPDATE transfers SET created_at = now() WHERE false",
        "DELETE FROM transfers",
        "TRUNCATE transfers",
        "UPDATE accounts SET balance = balance + 1 WHERE balance IS NOT NULL",
        "DELETE FROM accounts",
        "TRUNCATE accounts CASCADE",
        "INSERT INTO accounts (kind, merchant_id, balance) VALUES ('merchant_available', gen_random_uuid(), 5)",
    ],
)
def test_the_books_are_not_rewritten(house: House, statement: str, superuser: bool) -> None:
    house.credit("5")
    with pytest.raises(psycopg2.errors.InsufficientPrivilege):
        house.execute(statement, url=house.admin_url if superuser else None)


def test_the_service_has_no_right_to_rewrite_transfers(house: House) -> None:
    kinds = ("INSERT", "SELECT", "UPDATE", "DELETE", "TRUNCATE")
    granted = house.execute(
        "SELECT " + ", ".join(f"has_table_privilege('transfers', '{kind}')" for kind in kinds)
    )
    assert dict(zip(kinds, granted[0], strict=True)) == {
        "INSERT": True,
        "SELECT": True,
        "UPDATE": False,
        "DELETE": False,
        "TRUNCATE": False,
    }


_TRANSFER = """
INSERT INTO transfers (id, reference, debit_account, credit_account, amount, created_at)
SELECT gen_random_uuid(), %s, debit.id, credit.id, %s, now()
FROM accounts AS debit, accounts AS credit
WHERE debit.merchant_id = %s AND debit.kind = %s AND credit.merchant_id = %s AND credit.kind = %s
"""


@pytest.mark.parametrize(
    ("reference", "amount", "kinds", "constraint"),
    [
        ("withdrawal:{id}:reserve", "0", ("available", "reserved"), "ck_transfers_amount"),
        ("withdrawal:{id}:reserve", "-1", ("available", "reserved"), "ck_transfers_amount"),
        ("withdrawal:{id}:reserve", "1", ("available", "available"), "ck_transfers_accounts"),
        ("something:{id}", "1", ("available", "reserved"), "ck_transfers_reference"),
    ],
)
def test_a_transfer_that_cannot_be_is_refused_by_the_database(
    house: House, reference: str, amount: str, kinds: tuple[str, str], constraint: str
) -> None:
    merchant = house.credit("5")
    values = (merchant, f"merchant_{kinds[0]}", merchant, f"merchant_{kinds[1]}")
    with pytest.raises(psycopg2.errors.CheckViolation) as violation:
        house.execute(_TRANSFER, reference.format(id=uuid.uuid4()), amount, *values)
    assert violation.value.diag.constraint_name == constraint
    assert house.balance(merchant)[0] == "5.000000"


@pytest.mark.parametrize(
    ("reference", "amount", "kinds"),
    [
        ("withdrawal:{id}:release", "30", ("reserved", "available")),  # it still waits
        ("withdrawal:{id}:release", "20", ("reserved", "available")),
        ("withdrawal:{nobody}:reserve", "1", ("available", "reserved")),
        ("invoice:{nobody}", "1", ("reserved", "available")),
    ],
)
def test_a_transfer_that_is_no_step_is_refused_by_the_database(
    house: House, reference: str, amount: str, kinds: tuple[str, str]
) -> None:
    made = house.withdraw(merchant := house.credit("50"), "30")
    values = (merchant, f"merchant_{kinds[0]}", merchant, f"merchant_{kinds[1]}")
    named = reference.format(id=made.withdraw_uuid, nobody=uuid.uuid4())
    with pytest.raises(psycopg2.errors.InsufficientPrivilege, match="no step of a withdrawal"):
        house.execute(_TRANSFER, named, amount, *values)


@pytest.mark.parametrize(
    "change",
    [
        "status = 'success'",
        "status = 'success', processed_at = now()",
        "status = 'failed', processed_at = now()",
        "substatus = 'failed'",
        "status = 'completed', processed_at = now()",
        "processed_at = now()",
        "network_fee = amount",
    ],
)
def test_a_state_that_the_table_lacks_is_refused_by_the_database(house: House, change: str) -> None:
    made = house.withdraw(house.credit("100"))
    with pytest.raises(psycopg2.errors.CheckViolation):
        past_rights = past_all_rules(house.deps.settings.database_url)
        house.execute(f"UPDATE withdrawals SET {change} WHERE id = %s", made.withdraw_uuid, url=past_rights)


# -- credits


def test_an_invoice_is_credited_once(house: House) -> None:
    invoice = new_id()
    merchant = house.credit("7.25", invoice_id=invoice)
    house.credit("7.25", merchant, invoice)
    assert house.balance(merchant) == ("7.250000", "0.000000", "7.250000", "0.000000")


def test_an_invoice_credited_otherwise_before_is_not_swallowed(house: House) -> None:
    invoice = new_id()
    merchant = house.credit("7.25", invoice_id=invoice)
    for amount, whose in (("7.26", merchant), ("0", merchant), ("7.25", str(uuid.uuid4()))):
        with pytest.raises(CreditDiffers):
            house.credit(amount, whose, invoice)
    assert house.balance(merchant)[2] == "7.250000"


def test_a_credit_of_nothing_moves_nothing(house: House) -> None:
    transfers = house.check().transfers
    merchant = house.credit("0.000000")
    assert house.balance(merchant) == ("0.000000",) * 4
    assert house.check().transfers == transfers


def test_a_merchant_of_one_account_that_sql_made_is_paid_as_any_other(house: House) -> None:
    merchant = str(uuid.uuid4())
    one = (
        "INSERT INTO accounts (kind, merchant_id, balance) VALUES ('merchant_available', %s, 0) RETURNING id"
    )
    house.execute(one, merchant)
    house.credit("30", merchant)
    house.complete(house.process(house.withdraw(merchant)))
    assert house.balance(merchant)[0] == "20.000000"


# -- many at once


def test_twenty_withdrawals_of_a_balance_that_covers_seven_make_seven(house: House) -> None:
    merchant = house.credit("79.999999")
    outcomes = all_at_once([lambda: house.withdraw(merchant, "10")] * 20)
    assert len(answers(outcomes)) == 7
    assert reasons(outcomes) == ["INSUFFICIENT_BALANCE"] * 13
    assert house.balance(merchant)[:2] == ("9.999999", "70.000000")


def test_twenty_requests_with_one_key_make_one_withdrawal(house: House) -> None:
    merchant, key = house.credit("100"), str(uuid.uuid4())
    outcomes = all_at_once([lambda: house.withdraw(merchant, "10", request_key=key)] * 20)
    assert len({made.withdraw_uuid for made in answers(outcomes)}) == 1
    assert reasons(outcomes) == []
    assert house.balance(merchant)[:2] == ("90.000000", "10.000000")


def test_of_twenty_completions_and_cancellations_one_wins(house: House) -> None:
    for _ in range(3):
        merchant = house.credit("10")
        made = house.withdraw(merchant, "10")
        outcomes = all_at_once([partial(house.complete, made), partial(house.cancel, made)] * 10)
        final = house.get(made)
        # The ten cancellations are one step repeated, the ten completions name ten transactions.
        assert len(answers(outcomes)) == (1 if final.status == SUCCESS else 10)
        assert all(each == final for each in answers(outcomes))
        assert set(reasons(outcomes)) == {"WITHDRAWAL_STATE_CONFLICT"}
        paid, back = ("10.000000", "0.000000") if final.status == SUCCESS else ("0.000000", "10.000000")
        assert house.balance(merchant) == (back, "0.000000", "10.000000", paid)


def test_of_twenty_withdrawals_completed_by_one_transaction_one_is(house: House) -> None:
    merchant, tx_id = house.credit("200"), secrets.token_hex(32)
    made = [house.withdraw(merchant, "10") for _ in range(20)]
    written = [tx_id, tx_id.upper(), f"0x{tx_id}", f"0x{tx_id.upper()}"] * 5
    outcomes = all_at_once([partial(house.complete, *each) for each in zip(made, written, strict=True)])
    assert len(answers(outcomes)) == 1
    assert reasons(outcomes) == ["VALIDATION_ERROR"] * 19
    assert house.balance(merchant)[1:] == ("190.000000", "200.000000", "10.000000")


def test_money_moving_both_ways_at_once_never_deadlocks(house: House) -> None:
    merchant = house.credit("1000")
    back = [house.withdraw(merchant, "10") for _ in range(10)]
    calls: list[Callable[[], pb.Withdrawal]] = [lambda: house.withdraw(merchant, "10")] * 10
    calls += [partial(house.cancel, each) for each in back]
    assert reasons(all_at_once(calls)) == []
    assert house.balance(merchant) == ("900.000000", "100.000000", "1000.000000", "0.000000")


def test_one_invoice_credited_by_twenty_at_once_is_credited_once(house: House) -> None:
    merchant, invoice = str(uuid.uuid4()), new_id()
    all_at_once([lambda: house.credit("3", merchant, invoice)] * 20)
    assert house.balance(merchant)[2] == "3.000000"


# -- any order of events


class Ledger(RuleBasedStateMachine):
    """One merchant's money, against a model of a few numbers."""

    house: House
    withdrawals = Bundle("withdrawals")
    invoices = Bundle("invoices")

    def __init__(self) -> None:
        super().__init__()
        self.merchant = str(uuid.uuid4())
        self.available = self.reserved = self.credited = self.withdrawn = Decimal(0)

    @rule(target=invoices, amount=st.decimals("0", "60", places=6))
    def credit(self, amount: Decimal) -> tuple[uuid.UUID, Decimal]:
        invoice = new_id()
        self.house.credit(str(amount), self.merchant, invoice)
        self.available += amount
        self.credited += amount
        return invoice, amount

    @rule(invoice=invoices)
    def credit_again(self, invoice: tuple[uuid.UUID, Decimal]) -> None:
        self.house.credit(str(invoice[1]), self.merchant, invoice[0])

    @rule(target=withdrawals, amount=st.decimals("5", "40", places=6))
    def withdraw(self, amount: Decimal) -> object:
        try:
            made = self.house.withdraw(self.merchant, f"{amount:f}")
        except Refused as refused:
            assert refused.reason == "INSUFFICIENT_BALANCE"
            assert amount > self.available
            return multiple()
        assert amount <= self.available
        self.available -= amount
        self.reserved += amount
        return made

    @rule(made=withdrawals, step=st.sampled_from(["process", "complete", "fail", "cancel", "cancel by user"]))
    def step(self, made: pb.Withdrawal, step: str) -> None:
        before = self.house.get(made)
        steps: dict[str, Callable[[], pb.Withdrawal]] = {
            "process": lambda: self.house.process(made),
            "complete": lambda: self.house.complete(made, made.withdraw_uuid),
            "fail": lambda: self.house.fail(made),
            "cancel": lambda: self.house.cancel(made),
            "cancel by user": lambda: self.house.cancel(made, by_user=True),
        }
        try:
            after = steps[step]()
        except Refused as refused:
            assert refused.reason == "WITHDRAWAL_STATE_CONFLICT"
            assert before.status != PENDING or (before.substatus, step) == ("processing", "cancel by user")
            after = before
        if before.status != PENDING:
            assert after == before
        elif after.status != PENDING:
            amount = Decimal(made.amount)
            self.reserved -= amount
            self.available += 0 if after.status == SUCCESS else amount
            self.withdrawn += amount if after.status == SUCCESS else 0

    @invariant()
    def the_balance_is_the_models(self) -> None:
        numbers = (self.available, self.reserved, self.credited, self.withdrawn)
        assert self.house.balance(self.merchant) == tuple(usdt_text(number) for number in numbers)

    def teardown(self) -> None:
        report = self.house.check()
        assert (list(report.problems), report.sum) == ([], "0.000000")


def test_any_order_of_events_keeps_the_books_right(house: House) -> None:
    machine = type("OfThisHouse", (Ledger,), {"house": house})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=20,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.differing_executors],
        ),
    )
    references = house.execute("SELECT count(*), count(DISTINCT reference) FROM transfers")
    assert references[0][0] == references[0][1]
