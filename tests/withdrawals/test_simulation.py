"""Test mode: withdrawals end by themselves, by the operator's operations; in live mode nothing does that."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from services.withdrawals.addresses import fails_in_test_mode
from services.withdrawals.operations.simulation import end_withdrawals
from services.withdrawals.wiring import Deps
from services.withdrawals.workers import workers
from tests.withdrawals.conftest import TON, TON_ADDRESS, TRC20, House

API = (Path(__file__).parents[2] / "docs" / "api.md").read_text()
FAILING = re.findall(r"`((?:T|UQ|0x)\w[\w-]{32,})`", API)


def with_settings(house: House, **changes: Any) -> Deps:
    return replace(house.deps, settings=house.deps.settings.model_copy(update=changes))


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        (TRC20, None, pb.WITHDRAWAL_STATUS_SUCCESS),
        (TON, TON_ADDRESS, pb.WITHDRAWAL_STATUS_SUCCESS),
        (TRC20, FAILING[0], pb.WITHDRAWAL_STATUS_FAILED),
        (TON, FAILING[2], pb.WITHDRAWAL_STATUS_FAILED),
    ],
)
def test_a_withdrawal_ends_once_it_has_waited(
    house: House, method: int, address: str | None, status: pb.WithdrawalStatus.ValueType
) -> None:
    merchant = house.credit("5000")
    given = {"withdrawal_method_id": method} | ({"address": address} if address else {})
    made = house.withdraw(merchant, "2000", **given)
    deps = with_settings(house, mode="test", four_eyes=True)
    house.clock.advance(seconds=59)
    end_withdrawals(deps)
    assert house.get(made).status == pb.WITHDRAWAL_STATUS_PENDING
    house.clock.advance(seconds=2)
    end_withdrawals(deps)
    ended = house.get(made)
    assert ended.status == status
    assert bool(ended.external_tx_id) is (status == pb.WITHDRAWAL_STATUS_SUCCESS)
    assert not house.check().problems
    authors = house.execute(
        "SELECT actor_name FROM acts WHERE object = %s", f"withdrawal:{made.withdraw_uuid}"
    )
    assert ("simulation",) in authors


def test_the_documented_addresses_are_those_that_fail() -> None:
    networks = ("TRC20", "ERC20", "TON")
    assert [fails_in_test_mode(*each) for each in zip(networks, FAILING, strict=True)] == [True] * 3
    assert not fails_in_test_mode("TON", TON_ADDRESS)


@pytest.mark.parametrize(
    ("mode", "seconds", "is_there"), [("live", 60, False), ("test", 60, True), ("test", 0, False)]
)
def test_the_loop_runs_in_test_mode_alone(house: House, mode: str, seconds: int, is_there: bool) -> None:
    deps = with_settings(house, mode=mode, test_withdrawal_seconds=seconds)
    assert ("simulation" in {each.name for each in workers(deps)}) is is_there
