"""The search: withdrawals by id, transaction and address, and for members in the merchant's address book."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, func, select

from kit.base.money import fiat_text, usdt_text
from kit.db.finding import Found, Ids, OwnSearch, Part, Search, begins_like
from services.withdrawals.models import Correction, Refund, Withdrawal, WithdrawalMethod
from services.withdrawals.store import addresses
from services.withdrawals.store.refunds import is_spelled
from services.withdrawals.store.views import AddressView

IDS: Final[Ids] = {"withdrawal": Withdrawal.id, "correction": Correction.id, "refund": Refund.id}


def _withdrawals(
    connection: Connection,
    condition: ColumnElement[bool] | None,
    limit: int,
    place: str,
    column: str,
    *more: ColumnElement[bool],
) -> list[Found]:
    """Returns the withdrawals under all conditions; none when the first one is null."""
    if condition is None:
        return []
    return [
        _found(row, place, str(getattr(row, column)))
        for row in connection.execute(select(Withdrawal).where(condition, *more).limit(limit))
    ]


def _found(row: Any, place: str, value: str) -> Found:
    return Found(
        kind="withdrawal",
        id=str(row.id),
        field=place,
        value=value,
        status=row.status,
        created_at=row.created_at,
        facts={
            "merchant_id": str(row.merchant_id),
            "amount": usdt_text(row.amount),
            "currency_code": "USDT",
            "network": row.network,
            "address": row.address,
        },
    )


def _by_id(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    return _withdrawals(connection, begins_like(Withdrawal.id, text), limit, "id", "id")


def _by_transaction(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    condition = _has_transaction(connection, text)
    return _withdrawals(connection, condition, limit, "transaction", "external_tx_id")


def _has_transaction(connection: Connection, text: str) -> ColumnElement[bool]:
    """Returns the condition for a hash with and without 0x, in either case. The index begins with the network."""
    writing = text.lower().removeprefix("0x")
    networks = connection.execute(select(WithdrawalMethod.network).distinct()).scalars().all()
    written_so = func.lower(Withdrawal.external_tx_id).in_([writing, f"0x{writing}"])
    return Withdrawal.network.in_(networks) & written_so


def _by_address(connection: Connection, text: str, limit: int, *more: ColumnElement[bool]) -> Sequence[Found]:
    """Returns the newest withdrawals to the address, in either case."""
    query = select(Withdrawal).where(func.lower(Withdrawal.address) == text.lower(), *more)
    newest = query.order_by(Withdrawal.created_at.desc(), Withdrawal.id.desc()).limit(limit)
    return [_found(row, "address", row.address) for row in connection.execute(newest)]


def _refunds(connection: Connection, text: str, limit: int, *more: ColumnElement[bool]) -> list[Found]:
    """Returns the refunds with this id, id of the merchant or reference of the bank."""
    found: list[Found] = []
    for place, condition in (
        ("id", begins_like(Refund.id, text)),
        ("external_id", Refund.external_id == text),
        ("bank_reference", is_spelled("bank_reference", text)),
    ):
        if condition is not None:
            rows = connection.execute(select(Refund).where(condition, *more).limit(limit))
            found += [_refund(row, place, str(getattr(row, place))) for row in rows]
    return found[:limit]


def _refund(row: Any, place: str, value: str) -> Found:
    return Found(
        kind="refund",
        id=str(row.id),
        field=place,
        value=value,
        status=row.status,
        created_at=row.created_at,
        facts={
            "merchant_id": str(row.merchant_id),
            "amount": fiat_text(row.refund_amount),
            "currency_code": row.currency_code,
        },
    )


SEARCHES: Final[Sequence[Search]] = (_by_id, _by_transaction, _by_address, _refunds)


# -- one merchant's withdrawals, and its address book


def _own_by_id(connection: Connection, merchant_id: UUID, text: str, limit: int) -> Part:
    is_own = Withdrawal.merchant_id == merchant_id
    return Part(_withdrawals(connection, begins_like(Withdrawal.id, text), limit, "id", "id", is_own))


def _own_by_transaction(connection: Connection, merchant_id: UUID, text: str, limit: int) -> Part:
    condition, is_own = _has_transaction(connection, text), Withdrawal.merchant_id == merchant_id
    return Part(_withdrawals(connection, condition, limit, "transaction", "external_tx_id", is_own))


def _own_by_address(connection: Connection, merchant_id: UUID, text: str, limit: int) -> Part:
    return Part(_by_address(connection, text, limit, Withdrawal.merchant_id == merchant_id))


def _in_own_book(connection: Connection, merchant_id: UUID, text: str, limit: int) -> Part:
    in_book = (
        each for each in addresses.current(connection, merchant_id) if each.address.lower() == text.lower()
    )
    return Part([_address(each) for each in in_book][:limit])


def _address(each: AddressView) -> Found:
    return Found(
        kind="address",
        id=str(each.id),
        field="address",
        value=each.address,
        created_at=each.created_at,
        facts={"merchant_id": str(each.merchant_id), "network": each.network, "name": each.name},
    )


def _own_refunds(connection: Connection, merchant_id: UUID, text: str, limit: int) -> Part:
    return Part(_refunds(connection, text, limit, Refund.merchant_id == merchant_id))


OWN_SEARCHES: Final[Sequence[OwnSearch]] = (
    *(_own_by_id, _own_by_transaction, _in_own_book, _own_by_address),
    _own_refunds,
)
