"""Creates a withdrawal, whose amount is held from then on."""

from uuid import UUID

from sqlalchemy.orm import Session

from kit.base.ids import new_id
from kit.db.database import refusing, retry_conflicts
from kit.rpc import values
from kit.rpc.errors import Refused
from services.withdrawals import errors
from services.withdrawals.addresses import is_address_of
from services.withdrawals.domain import MAX_AMOUNT, PENDING, withdrawal_movements
from services.withdrawals.models import Withdrawal, WithdrawalMethod
from services.withdrawals.operations import fields
from services.withdrawals.operations.ledger import get_balance
from services.withdrawals.store import ledger, withdrawals
from services.withdrawals.wiring import Deps

# The values that a repeated request must repeat: method and merchant included, times and fee not.
_ASKED = ("merchant_id", "method_id", "address", "address_memo", "amount")


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
) -> Withdrawal:
    """Reserves the amount; a `request_key` that was used before returns the withdrawal that it made.

    Raises WITHDRAWAL_METHOD_NOT_FOUND, WITHDRAWAL_ADDRESS_INVALID, WITHDRAWAL_AMOUNT_INVALID,
    INSUFFICIENT_BALANCE.
    """
    asked = Withdrawal(
        id=new_id(),
        merchant_id=values.uuid("merchant_id", merchant_id),
        request_key=values.uuid("request_key", request_key),
        method_id=withdrawal_method_id,
        address=fields.address(address),
        address_memo=fields.memo(address_memo),
        amount=fields.amount("amount", amount),
    )
    too_little = {"ck_accounts_balance_not_negative": lambda: _insufficient_balance(deps, asked)}
    with refusing(too_little), deps.db.transaction() as tx:
        made = withdrawals.of_request_key(tx, asked.request_key)
        if made is not None:
            return _the_same(made, asked)
        _complete(asked, _fitting_method(tx, asked), deps)
        if not withdrawals.add(tx, asked):
            return _the_same(_made_meanwhile(tx, asked.request_key), asked)
        reserve = withdrawal_movements(
            asked.id, PENDING.status, amount=asked.amount, network_fee=asked.network_fee
        )
        ledger.transfer(tx, ledger.accounts(tx, asked.merchant_id), reserve, at=asked.created_at)
    return asked


def _fitting_method(tx: Session, asked: Withdrawal) -> WithdrawalMethod:
    """Returns the requested method, if it can carry this withdrawal."""
    method = withdrawals.enabled_method(tx, asked.method_id)
    if method is None:
        raise errors.method_not_found()
    if not is_address_of(method.network, asked.address):
        raise errors.address_invalid(method.network)
    if asked.address_memo is not None and not method.memo_allowed:
        raise values.invalid("address_memo", f"{method.network} knows no memo")
    if asked.amount < method.min_amount:
        raise errors.amount_below_min(method.min_amount)
    if asked.amount > MAX_AMOUNT:
        raise errors.amount_above_max(MAX_AMOUNT)
    return method


def _complete(asked: Withdrawal, method: WithdrawalMethod, deps: Deps) -> None:
    asked.network, asked.network_fee = method.network, method.network_fee
    asked.status, asked.substatus = PENDING.status, PENDING.substatus
    asked.created_at = asked.updated_at = deps.clock.now()


def _the_same(made: Withdrawal, asked: Withdrawal) -> Withdrawal:
    if any(getattr(made, name) != getattr(asked, name) for name in _ASKED):
        raise errors.request_key_taken()
    return made


def _made_meanwhile(tx: Session, request_key: UUID) -> Withdrawal:
    made = withdrawals.of_request_key(tx, request_key)
    if made is None:
        raise LookupError(f"request_key {request_key} is taken by a withdrawal that is not there")
    return made


def _insufficient_balance(deps: Deps, asked: Withdrawal) -> Refused:
    balance = get_balance(deps, merchant_id=str(asked.merchant_id))
    return errors.insufficient_balance(available=balance.available, requested=asked.amount)
