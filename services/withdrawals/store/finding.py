"""The operator's search: withdrawals by id and by transaction."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, select

from kit.base.money import usdt_text
from kit.db.finding import Found, Ids, Search, begins_like
from services.withdrawals.models import Withdrawal, WithdrawalMethod

IDS: Final[Ids] = {"withdrawal": Withdrawal.id}


def _withdrawals(
    connection: Connection, condition: ColumnElement[bool], limit: int, place: str, column: str
) -> list[Found]:
    return [
        _found(row, place, str(getattr(row, column)))
        for row in connection.execute(select(Withdrawal).where(condition).limit(limit))
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
    condition = begins_like(Withdrawal.id, text)
    return () if condition is None else _withdrawals(connection, condition, limit, "id", "id")


def _by_transaction(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    """Finds a hash with and without 0x, in either case. The index begins with the network."""
    writing = text.lower().removeprefix("0x")
    networks = connection.execute(select(WithdrawalMethod.network).distinct()).scalars().all()
    written_so = func.lower(Withdrawal.external_tx_id).in_([writing, f"0x{writing}"])
    condition = Withdrawal.network.in_(networks) & written_so
    return _withdrawals(connection, condition, limit, "transaction", "external_tx_id")


SEARCHES: Final[Sequence[Search]] = (_by_id, _by_transaction)
