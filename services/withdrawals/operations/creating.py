"""Creates a withdrawal, whose amount is held from then on."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from sqlalchemy.orm import Session

from kit.audit import acts
from kit.base.ids import new_id
from kit.db.database import refusing, retry_conflicts
from kit.rpc import values
from kit.rpc.errors import Refused
from services.withdrawals import errors
from services.withdrawals.addresses import is_address_of
from services.withdrawals.domain import MAX_AMOUNT, PENDING, withdrawal_movements
from services.withdrawals.operations import fields
from services.withdrawals.operations.ledger import get_balance
from services.withdrawals.store import ledger, withdrawals
from services.withdrawals.store.views import MethodView, WithdrawalView
from services.withdrawals.wiring import Deps

_IN_ACTS: Final = ("method_id", "network", "address", "address_memo", "amount", "network_fee", "status")


@dataclass(frozen=True, kw_only=True)
class _Request:
    """The values that a repeated request must repeat: method and merchant included, times and fee not."""

    merchant_id: UUID
    method_id: int
    address: str
    address_memo: str | None
    amount: Decimal


@retry_conflicts
def create_withdrawal(
    deps: Deps,
    *,
    merchant_id: str,
    withdrawal_method_id: int,
    address: str,
    address_memo: str | None,
    amount: str,
    request_key: str,
) -> WithdrawalView:
    """Reserves the amount; a `request_key` that was used before returns the withdrawal that it made.

    Raises WITHDRAWAL_METHOD_NOT_FOUND, WITHDRAWAL_ADDRESS_INVALID, WITHDRAWAL_AMOUNT_INVALID,
    INSUFFICIENT_BALANCE.
    """
    merchant, key = values.uuid("merchant_id", merchant_id), values.uuid("request_key", request_key)
    request = _Request(
        merchant_id=merchant,
        method_id=withdrawal_method_id,
        address=fields.address(address),
        address_memo=fields.memo(address_memo),
        amount=fields.amount("amount", amount),
    )
    too_little = {"ck_accounts_balance_not_negative": lambda: _insufficient_balance(deps, request)}
    with refusing(too_little), deps.db.transaction() as tx:
        made = withdrawals.of_request_key(tx, key)
        if made is not None:
            return _the_same(made, request)
        new = _new_withdrawal(request, key, _fitting_method(tx, request), at=deps.clock.now())
        if not withdrawals.add(tx, new):
            return _the_same(_made_meanwhile(tx, key), request)
        reserve = withdrawal_movements(new.id, new.status, amount=new.amount, network_fee=new.network_fee)
        ledger.transfer(tx, ledger.accounts(tx, new.merchant_id), reserve, at=new.created_at)
        acts.record(
            tx,
            "withdrawal.create",
            f"withdrawal:{new.id}",
            merchant_id=new.merchant_id,
            after=acts.values_of(new, _IN_ACTS),
        )
    return new


def _fitting_method(tx: Session, request: _Request) -> MethodView:
    """Returns the requested method, if it can carry this withdrawal."""
    method = withdrawals.enabled_method(tx, request.method_id)
    if method is None:
        raise errors.method_not_found()
    if not is_address_of(method.network, request.address):
        raise errors.address_invalid(method.network)
    if request.address_memo is not None and not method.memo_allowed:
        raise values.invalid("address_memo", f"{method.network} knows no memo")
    if request.amount < method.min_amount:
        raise errors.amount_below_min(method.min_amount)
    if request.amount > MAX_AMOUNT:
        raise errors.amount_above_max(MAX_AMOUNT)
    return method


def _new_withdrawal(
    request: _Request, request_key: UUID, method: MethodView, *, at: datetime
) -> WithdrawalView:
    return WithdrawalView(
        id=new_id(),
        merchant_id=request.merchant_id,
        request_key=request_key,
        method_id=request.method_id,
        network=method.network,
        address=request.address,
        address_memo=request.address_memo,
        amount=request.amount,
        network_fee=method.network_fee,
        status=PENDING.status,
        substatus=PENDING.substatus,
        external_tx_id=None,
        created_at=at,
        updated_at=at,
        processed_at=None,
    )


def _the_same(made: WithdrawalView, request: _Request) -> WithdrawalView:
    repeated = _Request(
        merchant_id=made.merchant_id,
        method_id=made.method_id,
        address=made.address,
        address_memo=made.address_memo,
        amount=made.amount,
    )
    if repeated != request:
        raise errors.request_key_taken()
    return made


def _made_meanwhile(tx: Session, request_key: UUID) -> WithdrawalView:
    made = withdrawals.of_request_key(tx, request_key)
    if made is None:
        raise LookupError(f"request_key {request_key} is taken by a withdrawal that is not there")
    return made


def _insufficient_balance(deps: Deps, request: _Request) -> Refused:
    balance = get_balance(deps, merchant_id=str(request.merchant_id))
    return errors.insufficient_balance(available=balance.available, requested=request.amount)
