"""Operators keep the methods: network, fee, minimum, on or off, over gRPC."""

import functools
import re
import uuid
from typing import Any

import pytest

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.rpc.errors import Refused
from services.withdrawals.addresses import NETWORKS
from tests.support.acting import refusal
from tests.withdrawals.conftest import TRON_ADDRESS, House, all_at_once

POLYGON_ADDRESS = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def a_code() -> str:
    return f"M-{uuid.uuid4().hex}"


def set_method(house: House, **values: Any) -> pb.WithdrawalMethod:
    method: dict[str, Any] = {
        "code": a_code(),
        "network": "POLYGON",
        "name": "USDT on Polygon",
        "network_fee": "0.5",
        "min_amount": "5",
        "memo_allowed": False,
        "enabled": True,
    }
    request = pb.SetWithdrawalMethodRequest(method=pb.WithdrawalMethod(**(method | values)))
    return house.stub.SetWithdrawalMethod(request).method


def methods(house: House) -> dict[str, pb.WithdrawalMethod]:
    answer = house.stub.ListWithdrawalMethods(pb.ListWithdrawalMethodsRequest())
    return {method.code: method for method in answer.methods}


def test_a_new_method_gets_the_next_id_and_takes_withdrawals(house: House) -> None:
    last = max(method.method_id for method in methods(house).values())

    made = set_method(house, network_fee="0.250000", min_amount="2")

    assert made.method_id == last + 1
    assert (made.network_fee, made.min_amount) == ("0.250000", "2.000000")
    assert methods(house)[made.code] == made
    merchant = house.credit("100")
    taken = house.withdraw(merchant, "2", withdrawal_method_id=made.method_id, address=POLYGON_ADDRESS)
    assert (taken.network_fee, taken.amount_to_receive) == ("0.250000", "1.750000")


def test_a_known_method_keeps_its_id_and_network_and_gets_all_else(house: House) -> None:
    made = set_method(house, network="TON")

    changed = set_method(
        house,
        code=made.code,
        network="TON",
        name="Toncoin's network",
        network_fee="0",
        min_amount="0.000001",
        memo_allowed=True,
        enabled=False,
    )

    assert changed == pb.WithdrawalMethod(
        method_id=made.method_id,
        code=made.code,
        network="TON",
        name="Toncoin's network",
        network_fee="0.000000",
        min_amount="0.000001",
        memo_allowed=True,
        enabled=False,
        transaction_pattern=made.transaction_pattern,
    )
    assert re.fullmatch(made.transaction_pattern, "9f" * 32)
    assert not re.fullmatch(made.transaction_pattern, "payment 7")
    assert methods(house)[made.code] == changed
    with pytest.raises(Refused, match="a method of its own"):
        set_method(house, code=made.code, network="TRC20")
    assert methods(house)[made.code] == changed


def test_a_withdrawal_keeps_the_fee_it_was_made_with(house: House) -> None:
    method, merchant = set_method(house, network="TRC20", network_fee="1"), house.credit("100")
    how: dict[str, Any] = {"withdrawal_method_id": method.method_id, "address": TRON_ADDRESS}
    before = house.withdraw(merchant, "10", **how)

    set_method(house, code=method.code, network="TRC20", network_fee="3")

    assert house.complete(before).network_fee == "1.000000"
    assert house.withdraw(merchant, "10", **how).network_fee == "3.000000"
    assert list(house.check().problems) == []


def test_a_method_is_switched_off_and_on_again(house: House) -> None:
    method, merchant = set_method(house, enabled=False), house.credit("100")
    how: dict[str, Any] = {"withdrawal_method_id": method.method_id, "address": POLYGON_ADDRESS}
    assert refusal(house.withdraw, merchant, **how).reason == "WITHDRAWAL_METHOD_NOT_FOUND"

    set_method(house, code=method.code, enabled=True)

    assert house.withdraw(merchant, **how).withdrawal_method_id == method.method_id


@pytest.mark.parametrize("network", sorted(NETWORKS))
def test_every_network_whose_addresses_are_known_can_have_methods(house: House, network: str) -> None:
    assert set_method(house, network=network).network == network


def test_methods_made_at_the_same_time_have_an_id_each(house: House) -> None:
    code = a_code()
    new = [functools.partial(set_method, house) for _ in range(8)]
    same = [functools.partial(set_method, house, code=code) for _ in range(8)]

    made = [each for each in all_at_once(new + same) if isinstance(each, pb.WithdrawalMethod)]

    assert len(made) == 16
    assert len({each.method_id for each in made[:8]}) == 8
    assert len({each.method_id for each in made[8:]}) == 1
    assert len({each.method_id for each in methods(house).values()}) == len(methods(house))
