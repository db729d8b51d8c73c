"""The table of a withdrawal's states and what each moves (docs/api.md#withdrawal-status)."""

import itertools
import uuid
from collections import defaultdict
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.withdrawals.domain import (
    CANCELLED_BY_ADMIN,
    CANCELLED_BY_USER,
    FAILED,
    INVALID_ADDRESS,
    PENDING,
    PROCESSING,
    REACHED_FROM,
    SUCCESS,
    UNKNOWN,
    AccountKind,
    State,
    WithdrawalStatus,
    invoice_credit,
    may_become,
    withdrawal_movements,
)

STEPS = {
    (PENDING, PROCESSING),
    (PENDING, SUCCESS),
    (PENDING, FAILED),
    (PENDING, INVALID_ADDRESS),
    (PENDING, UNKNOWN),
    (PENDING, CANCELLED_BY_USER),
    (PENDING, CANCELLED_BY_ADMIN),
    (PROCESSING, SUCCESS),
    (PROCESSING, FAILED),
    (PROCESSING, INVALID_ADDRESS),
    (PROCESSING, UNKNOWN),
    (PROCESSING, CANCELLED_BY_ADMIN),
}

usdt = st.decimals(min_value="0.000001", max_value="1000000", places=6)


@pytest.mark.parametrize(
    ("current", "target"),
    list(itertools.product(REACHED_FROM, REACHED_FROM)),
    ids=lambda state: state.substatus or str(state.status),
)
def test_only_these_steps_exist(current: State, target: State) -> None:
    assert may_become(current, target) == ((current, target) in STEPS)


def test_only_documented_statuses_and_substatuses_exist() -> None:
    assert {state.status for state in REACHED_FROM} == {"pending", "success", "failed", "cancelled"}
    documented = {
        "processing",
        "cancelled_by_user",
        "cancelled_by_admin",
        "failed",
        "invalid_address",
        "unknown",
    }
    assert {state.substatus for state in REACHED_FROM if state.substatus} == documented


@given(amount=usdt, fee_share=st.integers(0, 99), status=st.sampled_from(list(WithdrawalStatus)))
def test_whatever_happens_what_was_reserved_leaves_the_reserve_whole(
    amount: Decimal, fee_share: int, status: WithdrawalStatus
) -> None:
    fee = round(amount * fee_share / 100, 6)
    if fee >= amount:
        return
    statuses = list(dict.fromkeys([WithdrawalStatus.PENDING, status]))
    movements = [
        movement
        for each in statuses
        for movement in withdrawal_movements(uuid.uuid4(), each, amount=amount, network_fee=fee)
    ]
    balances: defaultdict[AccountKind, Decimal] = defaultdict(Decimal)
    for movement in movements:
        assert movement.amount > 0
        balances[movement.debit] -= movement.amount
        balances[movement.credit] += movement.amount
    assert sum(balances.values()) == 0
    assert balances[AccountKind.RESERVED] == (amount if status == "pending" else 0)
    assert balances[AccountKind.AVAILABLE] == (-amount if status in ("pending", "success") else 0)
    assert balances[AccountKind.PAID_OUT] == (amount - fee if status == "success" else 0)
    assert balances[AccountKind.FEES] == (fee if status == "success" else 0)


def test_references_name_what_moved_the_money() -> None:
    id = uuid.uuid4()
    assert invoice_credit(id, Decimal(1)).reference == f"invoice:{id}"
    names = [
        movement.reference
        for status in WithdrawalStatus
        for movement in withdrawal_movements(id, status, amount=Decimal(2), network_fee=Decimal(1))
    ]
    steps = ["reserve", "pay", "fee", "release", "release"]
    assert names == [f"withdrawal:{id}:{step}" for step in steps]
