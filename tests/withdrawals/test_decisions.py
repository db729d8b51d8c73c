"""What SQL under the role of withdrawals writes moves no money: no act decided it."""

import uuid
from functools import partial

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from services.withdrawals.operations import creating, stepping
from tests.support.acting import ANN, BEN, acting, refusal, requested
from tests.withdrawals.conftest import TRC20, TRON_ADDRESS, House
from tests.withdrawals.test_four_eyes import large, process


def test_a_large_one_that_sql_marks_as_processed_is_not_completed(house: House) -> None:
    made = large(house)
    house.execute("UPDATE withdrawals SET substatus = 'processing' WHERE id = %s", made.withdraw_uuid)
    assert refusal(lambda: house.complete(made)).reason == "NOT_DECIDED"
    assert house.cancel(made).status == pb.WITHDRAWAL_STATUS_CANCELLED  # the money goes back to the merchant
    assert house.balance(made.merchant_id)[0] == "5000.000000"


def test_one_that_is_being_sent_is_sent_by_nobody_else_and_not_canceled_when_sql_takes_it_back(
    house: House,
) -> None:
    made = house.withdraw(house.credit("100"), "20")
    acting(ANN, lambda: stepping.process_withdrawal(house.deps, withdraw_uuid=made.withdraw_uuid))
    house.execute("UPDATE withdrawals SET substatus = NULL WHERE id = %s", made.withdraw_uuid)
    again = partial(stepping.process_withdrawal, house.deps, withdraw_uuid=made.withdraw_uuid)
    assert refusal(lambda: acting(BEN, again)).reason == "NOT_DECIDED"
    assert refusal(lambda: house.cancel(made)).reason == "NOT_DECIDED"


def test_one_that_sql_adds_is_neither_processed_nor_completed(house: House) -> None:
    merchant, id = house.credit("100"), str(uuid.uuid4())
    house.execute(
        "INSERT INTO withdrawals (id, merchant_id, request_key, method_id, network, address, amount, network_fee,"
        " status, created_at, updated_at) VALUES (%s, %s, gen_random_uuid(), 1, 'TRC20', %s, 20, 1, 'pending', now(),"
        " now())",
        id,
        merchant,
        TRON_ADDRESS,
    )
    for call in (
        lambda: stepping.process_withdrawal(house.deps, withdraw_uuid=id),
        lambda: stepping.complete_withdrawal(house.deps, withdraw_uuid=id, external_tx_id=uuid.uuid4().hex),
    ):
        assert refusal(acting, ANN, call).reason == "NOT_DECIDED"


def test_an_approval_that_sql_writes_sends_nothing(house: House) -> None:
    made = large(house)
    asked = requested(ANN, process(house.deps, made))
    house.execute(
        "UPDATE approvals SET state = 'approved', decided_by = 'ben@example.com', decided_as = 'ben',"
        " decided_at = now() WHERE id = %s",
        asked,
    )
    assert refusal(lambda: house.complete(made)).reason == "WITHDRAWAL_STATE_CONFLICT"
    assert house.get(made).substatus == ""


def test_an_address_that_sql_adds_with_a_time_of_last_week_is_not_in_the_book(house: House) -> None:
    merchant, id = house.credit("100"), str(uuid.uuid4())
    house.execute(
        "INSERT INTO withdrawal_addresses (id, merchant_id, method_id, network, address, name, added_by, created_at,"
        " usable_at) VALUES (%s, %s, %s, 'TRC20', %s, 'x', 'x', now() - interval '9 days', now() - interval '8 days')",
        id,
        merchant,
        TRC20,
        TRON_ADDRESS,
    )

    def ask() -> object:
        return creating.request_withdrawal(
            house.deps,
            merchant_id=merchant,
            address_id=id,
            amount="10",
            network_fee="1.000000",
            request_key=str(uuid.uuid4()),
        )

    assert refusal(ask).reason == "WITHDRAWAL_ADDRESS_NOT_FOUND"


def test_a_fee_that_sql_lowers_is_taken_from_nobody(house: House) -> None:
    merchant = house.credit("100")
    house.execute("UPDATE withdrawal_methods SET network_fee = 0 WHERE id = 1")
    assert refusal(house.withdraw, merchant).reason == "WITHDRAWAL_METHOD_NOT_FOUND"
    house.execute("UPDATE withdrawal_methods SET network_fee = 1 WHERE id = 1")
    assert house.withdraw(merchant).network_fee == "1.000000"
