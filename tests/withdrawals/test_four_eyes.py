"""Withdrawals of FOUR_EYES_USDT or more: a second person approves their processing, and there is no way around it."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import partial

from fiatgate.approvals.v1 import approvals_pb2
from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.base.actors import Actor
from kit.rpc.approvals import ApprovalsServicer
from kit.rpc.errors import Refused
from services.withdrawals.operations import stepping
from services.withdrawals.rpc import APPROVABLE
from services.withdrawals.store.views import WithdrawalView
from services.withdrawals.wiring import Deps, wire
from tests.support.acting import ANN, BEN, CID, Approvals, acting, refusal, requested
from tests.withdrawals.conftest import House, all_at_once

PENDING, APPROVED, REJECTED = (
    approvals_pb2.APPROVAL_STATE_PENDING,
    approvals_pb2.APPROVAL_STATE_APPROVED,
    approvals_pb2.APPROVAL_STATE_REJECTED,
)
LARGE, SMALL = "1000", "999.999999"


def large(house: House, amount: str = LARGE) -> pb.Withdrawal:
    return house.withdraw(house.credit("5000"), amount)


def process(deps: Deps, made: pb.Withdrawal) -> Callable[[], WithdrawalView]:
    return partial(stepping.process_withdrawal, deps, withdraw_uuid=made.withdraw_uuid)


def approvals_of(deps: Deps) -> Approvals:
    return Approvals(ApprovalsServicer("withdrawals", deps, APPROVABLE))


def state(house: House, made: pb.Withdrawal) -> tuple[int, str]:
    now = house.get(made)
    return now.status, now.substatus


UNTOUCHED = (pb.WITHDRAWAL_STATUS_PENDING, "")
PROCESSING = (pb.WITHDRAWAL_STATUS_PENDING, "processing")
CANCELLED = (pb.WITHDRAWAL_STATUS_CANCELLED, "cancelled_by_user")


def test_a_smaller_one_needs_one_person(house: House) -> None:
    made = large(house, SMALL)
    assert acting(ANN, process(house.deps, made)).substatus == "processing"


def test_a_large_one_is_requested_and_changes_when_another_person_approves(house: House) -> None:
    made, approvals = large(house), approvals_of(house.deps)
    asked = requested(ANN, process(house.deps, made))
    assert state(house, made) == UNTOUCHED

    (listed,) = approvals.of(f"withdrawal:{made.withdraw_uuid}")
    assert (listed.approval_id, listed.state, listed.requested_by, listed.service) == (
        asked,
        PENDING,
        "ann@example.com",
        "withdrawals",
    )
    assert listed.summary == (
        f"Send {made.amount_to_receive} USDT on TRC20 to {made.address}, "
        f"which takes 1000.000000 USDT of merchant {made.merchant_id}"
    )
    assert refusal(lambda: approvals.approve(ANN, asked)).reason == "OTHER_PERSON_REQUIRED"
    approved = approvals.approve(BEN, asked, "the address is theirs")
    assert (approved.state, approved.decided_by, approved.decision_note) == (
        APPROVED,
        "ben@example.com",
        "the address is theirs",
    )
    assert state(house, made) == PROCESSING
    assert acting(ANN, process(house.deps, made)).substatus == "processing"  # the call again
    assert house.complete(made).status == pb.WITHDRAWAL_STATUS_SUCCESS


# -- ways around it


def test_it_cannot_be_completed_without_being_processed(house: House) -> None:
    made = large(house)
    assert refusal(lambda: house.complete(made)).reason == "WITHDRAWAL_STATE_CONFLICT"
    requested(ANN, process(house.deps, made))
    assert refusal(lambda: house.complete(made)).reason == "WITHDRAWAL_STATE_CONFLICT"
    assert state(house, made) == UNTOUCHED


def test_the_merchant_can_cancel_until_the_approval_and_the_request_ends_with_it(house: House) -> None:
    made, approvals = large(house), approvals_of(house.deps)
    asked = requested(ANN, process(house.deps, made))
    cancel = partial(stepping.cancel_withdrawal, house.deps, withdraw_uuid=made.withdraw_uuid, by_user=True)
    acting(Actor(kind="api", name="gateway", surface="api"), cancel)
    (closed,) = approvals.of(f"withdrawal:{made.withdraw_uuid}")
    assert (closed.state, closed.decision_note) == (
        REJECTED,
        "The withdrawal became cancelled (cancelled_by_user)",
    )
    assert refusal(lambda: approvals.approve(BEN, asked)).reason == "APPROVAL_STATE_CONFLICT"
    assert state(house, made) == CANCELLED


def test_one_that_is_made_again_needs_an_approval_of_its_own(house: House) -> None:
    merchant = house.credit("5000")
    first = house.withdraw(merchant, LARGE)
    approvals_of(house.deps).approve(BEN, requested(ANN, process(house.deps, first)))
    acting(ANN, lambda: house.cancel(first))
    again = house.withdraw(merchant, LARGE)
    requested(ANN, process(house.deps, again))
    assert state(house, again) == UNTOUCHED


def test_cancelling_and_approving_at_once_have_one_outcome(house: House) -> None:
    approvals = approvals_of(house.deps)
    for _ in range(5):
        made = large(house)
        asked = requested(ANN, process(house.deps, made))
        cancel = partial(
            stepping.cancel_withdrawal, house.deps, withdraw_uuid=made.withdraw_uuid, by_user=True
        )
        calls: list[Callable[[], object]] = [
            partial(acting, CID, cancel),
            partial(approvals.approve, BEN, asked),
        ]
        cancelled, approved = all_at_once(calls)
        (decided,) = approvals.of(f"withdrawal:{made.withdraw_uuid}")
        if isinstance(approved, Refused):
            assert approved.reason == "APPROVAL_STATE_CONFLICT"
            assert (state(house, made), decided.state) == (CANCELLED, REJECTED)
        else:
            assert isinstance(cancelled, Refused)
            assert (state(house, made), decided.state) == (PROCESSING, APPROVED)


def test_a_higher_limit_lets_one_person_go_on_and_ends_the_request(house: House) -> None:
    made = large(house)
    asked = requested(ANN, process(house.deps, made))
    raised = replace(
        house.deps, settings=house.deps.settings.model_copy(update={"four_eyes_usdt": Decimal(2000)})
    )
    acting(ANN, process(raised, made))
    approvals = approvals_of(house.deps)
    assert refusal(lambda: approvals.approve(BEN, asked)).reason == "APPROVAL_STATE_CONFLICT"
    (closed,) = approvals.of(f"withdrawal:{made.withdraw_uuid}")
    assert closed.state == REJECTED


def test_a_lower_limit_holds_for_the_next_step_and_what_is_being_sent_is_finished(house: House) -> None:
    sent, waits = large(house, SMALL), large(house, SMALL)
    acting(ANN, process(house.deps, sent))
    lowered = replace(
        house.deps, settings=house.deps.settings.model_copy(update={"four_eyes_usdt": Decimal(10)})
    )
    requested(ANN, process(lowered, waits))
    complete = partial(
        stepping.complete_withdrawal, lowered, withdraw_uuid=sent.withdraw_uuid, external_tx_id="e" * 64
    )
    assert acting(ANN, complete).status == "success"


def test_switched_off_one_person_is_enough(house: House) -> None:
    made = large(house)
    off = replace(house.deps, settings=house.deps.settings.model_copy(update={"four_eyes": False}))
    assert acting(ANN, process(off, made)).substatus == "processing"


def test_a_request_outlives_the_process_that_took_it(house: House) -> None:
    made = large(house)
    asked = requested(ANN, process(house.deps, made))
    restarted = wire(house.deps.settings)
    approvals_of(restarted).approve(BEN, asked)
    restarted.db.dispose()
    assert state(house, made) == PROCESSING


def test_terms_that_were_changed_past_all_rules_are_not_sent(house: House) -> None:
    made, approvals = large(house), approvals_of(house.deps)
    asked = requested(ANN, process(house.deps, made))
    house.execute(
        "SET session_replication_role = replica; UPDATE withdrawals SET address = 'TOther' WHERE id = %s",
        made.withdraw_uuid,
        url=house.admin_url,
    )
    assert refusal(lambda: approvals.approve(BEN, asked)).reason == "APPROVAL_STATE_CONFLICT"
    assert state(house, made) == UNTOUCHED
