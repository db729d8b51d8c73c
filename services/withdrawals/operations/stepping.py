"""Operators' steps on a withdrawal: each is one step of the domain's table, and safe to repeat.

The caller may name the stage that it saw: in any other one its step is refused, so of two people who process the same
withdrawal one alone reads that the money is to be sent.

A withdrawal of `FOUR_EYES_USDT` or more is processed when a second person approves, and only then it can be completed.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy.orm import Session

from kit.audit import acts
from kit.audit.approvals import Approval, Terms, close
from kit.audit.decisions import before_by_acts, is_as_decided
from kit.base import actors
from kit.base.money import usdt_text
from kit.db.database import refusing, retry_conflicts
from kit.rpc import approvals, values
from kit.rpc.actors import require_merchant
from kit.rpc.errors import not_decided
from services.withdrawals import errors
from services.withdrawals.domain import (
    CANCELLED_BY_ADMIN,
    CANCELLED_BY_USER,
    FAILED,
    FAILURES,
    PENDING,
    PROCESSING,
    SUCCESS,
    Stage,
    State,
    WithdrawalStatus,
    may_become,
    withdrawal_movements,
)
from services.withdrawals.operations import fields
from services.withdrawals.store import ledger, withdrawals
from services.withdrawals.store.decisions import WITHDRAWAL
from services.withdrawals.store.views import WithdrawalView
from services.withdrawals.transactions import is_same, normal_form, writings
from services.withdrawals.wiring import Deps

PROCESS: str = "withdrawal.process"
_ACTS: Final = {
    WithdrawalStatus.SUCCESS: "withdrawal.complete",
    WithdrawalStatus.FAILED: "withdrawal.fail",
    WithdrawalStatus.CANCELLED: "withdrawal.cancel",
}
_STATE_OF_STAGE: Final[Mapping[str, State]] = {Stage.REQUESTED: PENDING, Stage.PROCESSING: PROCESSING}
_IN_ACTS: Final = ("status", "substatus", "external_tx_id")


def process_withdrawal(deps: Deps, *, withdraw_uuid: str, expected_stage: str = "") -> WithdrawalView:
    """Marks that it is being sent. Raises WITHDRAWAL_NOT_FOUND, WITHDRAWAL_STATE_CONFLICT, as the next three do;
    NOT_DECIDED as the next one does; APPROVAL_REQUIRED from `FOUR_EYES_USDT` on, and APPROVAL_STATE_CONFLICT.
    """
    return approvals.done(_advance(deps, withdraw_uuid, PROCESSING, expected_stage))


def process_approved(deps: Deps, tx: Session, asked: Approval) -> None:
    """Makes the step that was requested. Raises WITHDRAWAL_STATE_CONFLICT, APPROVAL_STATE_CONFLICT."""
    withdrawal = _locked(tx, UUID(asked.request["withdraw_uuid"]))
    if withdrawal.state != PENDING:
        raise errors.state_conflict(withdrawal.state)
    if not asked.asks_for(_processing(withdrawal)):
        raise approvals.changed_since()
    _step(deps, tx, withdrawal, PROCESSING)


def complete_withdrawal(
    deps: Deps, *, withdraw_uuid: str, external_tx_id: str, expected_stage: str = ""
) -> WithdrawalView:
    """Records the transaction that sent it; a second transaction for it is a conflict.

    Raises VALIDATION_ERROR when the transaction, in any spelling, has paid another withdrawal.
    """
    transaction = fields.external_tx_id(external_tx_id)
    return approvals.done(_advance(deps, withdraw_uuid, SUCCESS, expected_stage, transaction))


def fail_withdrawal(
    deps: Deps, *, withdraw_uuid: str, substatus: str, expected_stage: str = ""
) -> WithdrawalView:
    """Records that it could not be sent, for one of the reasons of `FAILURES`; gives the money back to the merchant."""
    target = FAILURES.get(substatus or str(FAILED.substatus))
    if target is None:
        raise values.invalid("substatus", f"Expected one of {', '.join(FAILURES)}")
    return approvals.done(_advance(deps, withdraw_uuid, target, expected_stage))


def cancel_withdrawal(
    deps: Deps, *, withdraw_uuid: str, by_user: bool, expected_stage: str = ""
) -> WithdrawalView:
    """Cancels it; gives the money back to the merchant. A member of the merchant is the user, whatever `by_user` is:
    one that is being sent is not the merchant's to cancel.
    """
    by_member = actors.current().surface == "dashboard"
    target = CANCELLED_BY_USER if by_user or by_member else CANCELLED_BY_ADMIN
    return approvals.done(_advance(deps, withdraw_uuid, target, expected_stage))


@retry_conflicts
def _advance(
    deps: Deps, withdraw_uuid: str, target: State, expected_stage: str, external_tx_id: str | None = None
) -> WithdrawalView | Approval:
    expected = _expected(expected_stage)
    withdrawal_id = values.uuid_or(errors.withdrawal_not_found, withdraw_uuid)
    tx_taken = {"uq_withdrawals_network_external_tx_id": errors.transaction_taken}
    with refusing(tx_taken), deps.db.transaction() as tx:
        withdrawal = _locked(tx, withdrawal_id)
        require_merchant(withdrawal.merchant_id, errors.withdrawal_not_found)
        current = withdrawal.state
        transaction = external_tx_id and normal_form(withdrawal.network, external_tx_id)
        if expected not in (None, current):
            raise errors.state_conflict(current)
        if current == target:
            return _repeated(withdrawal, transaction)
        if not may_become(current, target):
            raise errors.state_conflict(current)
        if current == PENDING and _needs_two(deps, withdrawal):
            if target == PROCESSING:
                return approvals.request(tx, _processing(withdrawal), deps)
            if target == SUCCESS:
                raise errors.not_processed()
        if transaction is not None and _has_paid(tx, withdrawal.network, transaction):
            raise errors.transaction_taken()
        close(tx, f"withdrawal:{withdrawal_id}", at=deps.clock.now(), note=f"The withdrawal became {target}")
        return _step(deps, tx, withdrawal, target, transaction)


def _expected(stage: str) -> State | None:
    """Returns the state of the stage; None for no stage. Raises VALIDATION_ERROR for another text."""
    if not stage:
        return None
    found = _STATE_OF_STAGE.get(stage)
    if found is None:
        raise values.invalid("expected_stage", f"Expected one of {', '.join(_STATE_OF_STAGE)}")
    return found


def _locked(tx: Session, withdrawal_id: UUID) -> WithdrawalView:
    withdrawal = withdrawals.locked(tx, withdrawal_id)
    if withdrawal is None:
        raise errors.withdrawal_not_found()
    return withdrawal


def _needs_two(deps: Deps, withdrawal: WithdrawalView) -> bool:
    return deps.settings.four_eyes and withdrawal.amount >= deps.settings.four_eyes_usdt


def _processing(withdrawal: WithdrawalView) -> Terms:
    return process_terms(
        {
            "withdraw_uuid": str(withdrawal.id),
            "merchant_id": str(withdrawal.merchant_id),
            "network": withdrawal.network,
            "address": withdrawal.address,
            "address_memo": withdrawal.address_memo,
            "amount": usdt_text(withdrawal.amount),
            "network_fee": usdt_text(withdrawal.network_fee),
        }
    )


def process_terms(request: Mapping[str, Any]) -> Terms:
    amount, address, memo = request["amount"], request["address"], request["address_memo"]
    receives = usdt_text(Decimal(amount) - Decimal(request["network_fee"]))
    return Terms(
        act=PROCESS,
        object=f"withdrawal:{request['withdraw_uuid']}",
        request=request,
        summary=f"Send {receives} USDT on {request['network']} to {address}{f', memo {memo}' if memo else ''}, which "
        f"takes {amount} USDT of merchant {request['merchant_id']}",
        merchant_id=UUID(request["merchant_id"]),
    )


def _step(
    deps: Deps, tx: Session, withdrawal: WithdrawalView, target: State, transaction: str | None = None
) -> WithdrawalView:
    now, values_now = deps.clock.now(), acts.values_of(withdrawal, WITHDRAWAL.fields)
    # One that SQL made or marked can still be ended, which returns the amount; one that operators send can't.
    by_acts = before_by_acts(tx, WITHDRAWAL, withdrawal.id, "status", "substatus")
    waits = by_acts in ({}, {"status": "pending", "substatus": ""})
    if (target in {PROCESSING, SUCCESS} or not waits) and not is_as_decided(
        tx, WITHDRAWAL, withdrawal.id, values_now, locked=True
    ):
        raise not_decided("withdrawal")
    advanced = withdrawals.advance(tx, withdrawal, target, external_tx_id=transaction, at=now)
    if target.status is not withdrawal.status:
        movements = withdrawal_movements(
            withdrawal.id, target.status, amount=withdrawal.amount, network_fee=withdrawal.network_fee
        )
        ledger.transfer(tx, ledger.accounts(tx, withdrawal.merchant_id), movements, at=now)
    acts.record(
        tx,
        PROCESS if target == PROCESSING else _ACTS[target.status],
        f"withdrawal:{withdrawal.id}",
        merchant_id=withdrawal.merchant_id,
        before=acts.values_of(withdrawal, _IN_ACTS),
        after=acts.values_of(advanced, _IN_ACTS),
    )
    return advanced


def _has_paid(tx: Session, network: str, transaction: str) -> bool:
    """Returns whether the transaction, in any spelling, has completed a withdrawal.

    Completions by the same transaction wait for each other. Without that, two at the same time with different spellings
    would both find no withdrawal.
    """
    known_as = writings(network, transaction)
    withdrawals.wait_for_transaction(tx, network, known_as[0])
    return withdrawals.paid_by(tx, network, known_as) is not None


def _repeated(withdrawal: WithdrawalView, transaction: str | None) -> WithdrawalView:
    stored = withdrawal.external_tx_id
    if stored is not None and (transaction is None or not is_same(withdrawal.network, stored, transaction)):
        raise errors.paid_by_another_transaction(stored)
    return withdrawal
