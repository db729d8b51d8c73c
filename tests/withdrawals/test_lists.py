"""The operator's list of withdrawals by each of its filters, and the story of one."""

import secrets
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from tests.withdrawals.conftest import TON, TON_ADDRESS, TRC20, TRON_ADDRESS, House
from tests.withdrawals.test_rpc import refusal

REQUESTED, PROCESSING, DONE = (
    pb.WITHDRAWAL_STAGE_REQUESTED,
    pb.WITHDRAWAL_STAGE_PROCESSING,
    pb.WITHDRAWAL_STAGE_DONE,
)


def found(house: House, **values: Any) -> list[pb.Withdrawal]:
    return list(house.stub.ListAllWithdrawals(pb.ListAllWithdrawalsRequest(**values)).withdrawals)


def amounts(house: House, merchant: str, **values: Any) -> list[str]:
    return [each.amount.partition(".")[0] for each in found(house, merchant_id=merchant, **values)]


@pytest.fixture(scope="module")
def merchant(house: House) -> str:
    """Withdrawals of 10, 20 … 60 USDT, a minute apart: requested, processing, done in three ways, and one on TON."""
    merchant = house.credit("1000")
    ends: list[Callable[[pb.Withdrawal], object]] = [
        lambda made: made,
        house.process,
        house.complete,
        house.fail,
        house.cancel,
    ]
    for number, end in enumerate(ends, 1):
        house.clock.advance(minutes=1)
        end(house.withdraw(merchant, f"{number}0"))
    house.clock.advance(minutes=1)
    house.withdraw(merchant, "60", withdrawal_method_id=TON, address=TON_ADDRESS)
    return merchant


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({}, ["60", "50", "40", "30", "20", "10"]),
        ({"oldest_first": True, "limit": 2}, ["10", "20"]),
        ({"stage": REQUESTED}, ["60", "10"]),
        ({"stage": PROCESSING}, ["20"]),
        ({"stage": DONE}, ["50", "40", "30"]),
        ({"stage": DONE, "oldest_first": True}, ["30", "40", "50"]),
        ({"withdrawal_method_id": TON}, ["60"]),
        ({"withdrawal_method_id": TRC20, "stage": REQUESTED}, ["10"]),
        ({"withdrawal_method_id": 99}, []),
        ({"address": TRON_ADDRESS.lower()}, ["50", "40", "30", "20", "10"]),
        ({"address": TRON_ADDRESS[:-1]}, []),
        ({"amount_from": "30"}, ["60", "50", "40", "30"]),
        ({"amount_to": "29.999999"}, ["20", "10"]),
        ({"amount_from": "40", "amount_to": "50"}, ["50", "40"]),
        ({"stage": REQUESTED, "by_amount": True}, ["60", "10"]),
        ({"stage": REQUESTED, "by_amount": True, "oldest_first": True}, ["10", "60"]),
    ],
)
def test_each_filter_leaves_its_withdrawals(
    house: House, merchant: str, filters: dict[str, Any], expected: list[str]
) -> None:
    assert amounts(house, merchant, **filters) == expected


def test_days_bound_the_list_in_both_orders(house: House, merchant: str) -> None:
    whole = found(house, merchant_id=merchant, oldest_first=True)
    span: dict[str, Any] = {"created_from": whole[1].created_at, "created_before": whole[3].created_at}
    assert found(house, merchant_id=merchant, oldest_first=True, **span) == whole[1:3]
    assert found(house, merchant_id=merchant, **span) == whole[1:3][::-1]


def test_pages_are_one_list_in_both_orders(house: House, merchant: str) -> None:
    for oldest_first in (False, True):
        of: dict[str, Any] = {"merchant_id": merchant, "oldest_first": oldest_first}
        seen: list[pb.Withdrawal] = []
        while page := found(house, limit=4, after_withdraw_uuid=seen[-1].withdraw_uuid if seen else "", **of):
            seen += page
        assert seen == found(house, **of)


def test_those_that_wait_have_an_order_of_amounts_and_pages_go_on_in_it(house: House) -> None:
    merchant = house.credit("1000")
    made = [house.withdraw(merchant, amount) for amount in ("30", "10", "30", "20")]
    order = [made[1], made[3], *sorted((made[0], made[2]), key=lambda each: each.withdraw_uuid)]
    for oldest_first, expected in ((True, order), (False, order[::-1])):
        of: dict[str, Any] = {"merchant_id": merchant, "stage": REQUESTED, "by_amount": True}
        of["oldest_first"] = oldest_first
        seen: list[pb.Withdrawal] = []
        while page := found(house, limit=1, after_withdraw_uuid=seen[-1].withdraw_uuid if seen else "", **of):
            seen += page
        assert seen == expected
    assert refusal(lambda: found(house, stage=DONE, by_amount=True))[0] == "VALIDATION_ERROR"


def test_a_transaction_is_found_in_each_of_its_spellings(house: House) -> None:
    digits = secrets.token_hex(32)
    merchant = house.credit("100")
    paid = house.complete(house.withdraw(merchant), digits)
    for spelling in (digits, digits.upper(), f"0x{digits}"):
        assert found(house, external_tx_id=spelling) == [paid]
    assert found(house, external_tx_id=digits, merchant_id=str(uuid.uuid4())) == []


def test_the_story_of_a_withdrawal_has_its_method_its_acts_and_its_transfers(house: House) -> None:
    made = house.withdraw(house.credit("100"))
    house.process(made)
    done = house.complete(made)

    story = house.stub.GetWithdrawalStory(pb.GetWithdrawalStoryRequest(withdraw_uuid=made.withdraw_uuid))

    assert story.withdrawal == done
    assert story.method.code == "USDT-TRC20"
    assert [each.act for each in story.acts] == [
        "withdrawal.create",
        "withdrawal.process",
        "withdrawal.complete",
    ]
    assert {each.object for each in story.acts} == {f"withdrawal:{made.withdraw_uuid}"}
    assert [(each.kind, each.amount) for each in story.transfers] == [
        (pb.TRANSFER_KIND_RESERVE, "10.000000"),
        (pb.TRANSFER_KIND_PAY, "9.000000"),
        (pb.TRANSFER_KIND_FEE, "1.000000"),
    ]
    assert story.pending_approval_id == ""
    for unknown in (str(uuid.uuid4()), "x"):
        request = pb.GetWithdrawalStoryRequest(withdraw_uuid=unknown)
        assert refusal(house.stub.GetWithdrawalStory, request) == ("WITHDRAWAL_NOT_FOUND", {})
