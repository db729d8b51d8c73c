"""Creates a withdrawal, whose amount is held from then on."""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final
from uuid import UUID

from sqlalchemy.orm import Session

from fiatgate.withdrawals.v1 import withdrawals_pb2 as pb
from kit.audit import acts
from kit.base.ids import new_id
from kit.base.money import usdt_text
from kit.base.proto import most_of
from kit.db.database import refusing, retry_conflicts
from kit.rpc import values
from kit.rpc.errors import Refused, edit_conflict
from services.withdrawals import errors
from services.withdrawals.domain import MAX_AMOUNT, PENDING, withdrawal_movements
from services.withdrawals.operations import addresses, fields
from services.withdrawals.operations.bans import refusal_of_member
from services.withdrawals.operations.ledger import get_balance
from services.withdrawals.store import ledger, withdrawals
from services.withdrawals.store.views import MethodView, WithdrawalView
from services.withdrawals.wiring import Deps

_IN_ACTS: Final = (
    *("method_id", "network", "address", "address_memo", "amount", "network_fee", "status", "request_key"),
)


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
    reason: str = "",
) -> WithdrawalView:
    """Reserves the amount; the merchant reads the reason. A `request_key` that was used before returns the withdrawal
    that it made.

    Raises WITHDRAWAL_METHOD_NOT_FOUND, WITHDRAWAL_ADDRESS_INVALID, WITHDRAWAL_AMOUNT_INVALID,
    INSUFFICIENT_BALANCE.
    """
    merchant, key = values.uuid("merchant_id", merchant_id), values.uuid("request_key", request_key)
    note = values.text("reason", reason, least=0, most=most_of(pb.CreateWithdrawalRequest, "reason"))
    request = _Request(
        merchant_id=merchant,
        method_id=withdrawal_method_id,
        address=fields.address(address),
        address_memo=fields.memo(address_memo),
        amount=fields.amount("amount", amount),
    )
    with _reserving(deps, merchant, request.amount), deps.db.transaction() as tx:
        made = withdrawals.of_request_key(tx, key)
        if made is not None:
            return _the_same(made, request)
        return _make(tx, request, key, _fitting_method(tx, request), at=deps.clock.now(), note=note)


def check_address(deps: Deps, *, withdrawal_method_id: int, address: str, address_memo: str | None) -> None:
    """Raises WITHDRAWAL_METHOD_NOT_FOUND, WITHDRAWAL_ADDRESS_INVALID."""
    given, memo = fields.address(address), fields.memo(address_memo)
    with deps.db.transaction() as tx:
        addresses.method_for(tx, withdrawal_method_id, given, memo)


@retry_conflicts
def request_withdrawal(
    deps: Deps, *, merchant_id: str, address_id: str, amount: str, network_fee: str, request_key: str
) -> WithdrawalView:
    """Reserves the amount for the merchant's member who saw this fee, to an address of the merchant's book. A
    `request_key` that was used before returns the withdrawal that it made, also when the address was removed or the
    merchant was banned since.

    Raises what `create_withdrawal` raises, WITHDRAWAL_ADDRESS_NOT_FOUND, WITHDRAWAL_ADDRESS_WAITS, EDIT_CONFLICT, and
    the reasons of `refusal_of_member`.
    """
    merchant, key = values.uuid("merchant_id", merchant_id), values.uuid("request_key", request_key)
    wanted, fee_seen = fields.amount("amount", amount), fields.amount("network_fee", network_fee)
    refusal = refusal_of_member(deps, merchant)
    with _reserving(deps, merchant, wanted), deps.db.transaction() as tx:
        address = addresses.usable_address(tx, merchant, address_id)
        request = _Request(
            merchant_id=merchant,
            method_id=address.method_id,
            address=address.address,
            address_memo=address.address_memo,
            amount=wanted,
        )
        made = withdrawals.of_request_key(tx, key)
        if made is not None:
            return _the_same(made, request)
        if refusal is not None:
            raise refusal
        now = deps.clock.now()
        addresses.require_usable(address, now=now)
        method = _fitting_method(tx, request)
        if method.network_fee != fee_seen:
            raise edit_conflict("network_fee", usdt_text(method.network_fee))
        return _make(tx, request, key, method, at=now)


def _reserving(deps: Deps, merchant_id: UUID, amount: Decimal) -> AbstractContextManager[None]:
    """Raises INSUFFICIENT_BALANCE in place of the database's refusal of a balance below zero."""

    def too_little() -> Refused:
        balance = get_balance(deps, merchant_id=str(merchant_id))
        return errors.insufficient_balance(available=balance.available, requested=amount)

    return refusing({"ck_accounts_balance_not_negative": too_little})


def _make(
    tx: Session, request: _Request, request_key: UUID, method: MethodView, *, at: datetime, note: str = ""
) -> WithdrawalView:
    """Stores the withdrawal and moves its amount; returns the one that a concurrent request with the key made."""
    new = _new_withdrawal(request, request_key, method, at=at)
    if not withdrawals.add(tx, new):
        return _the_same(_made_meanwhile(tx, request_key), request)
    reserve = withdrawal_movements(new.id, new.status, amount=new.amount, network_fee=new.network_fee)
    ledger.transfer(tx, ledger.accounts(tx, new.merchant_id), reserve, at=new.created_at)
    if not ledger.is_finite(tx, new.merchant_id):
        raise errors.insufficient_balance(available=Decimal(0), requested=new.amount)
    acts.record(
        tx,
        "withdrawal.create",
        f"withdrawal:{new.id}",
        merchant_id=new.merchant_id,
        after=acts.values_of(new, _IN_ACTS),
        note=note,
    )
    return new


def _fitting_method(tx: Session, request: _Request) -> MethodView:
    """Returns the requested method, if it can carry this withdrawal."""
    method = addresses.method_for(tx, request.method_id, request.address, request.address_memo)
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
