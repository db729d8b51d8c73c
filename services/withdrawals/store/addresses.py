"""Address books of merchants."""

from dataclasses import asdict
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy import (
    Connection,
    DateTime,
    Integer,
    Text,
    Uuid,
    column,
    func,
    insert,
    select,
    table,
    text,
    update,
)
from sqlalchemy.orm import Session

from kit.db.rows import Rows
from services.withdrawals.store.views import AddressView

_AT: Final = DateTime(timezone=True)
_ADDRESSES: Final = table(
    "withdrawal_addresses",
    column("id", Uuid()),
    column("merchant_id", Uuid()),
    column("method_id", Integer()),
    column("network", Text()),
    column("address", Text()),
    column("address_memo", Text()),
    column("name", Text()),
    column("added_by", Text()),
    column("created_at", _AT),
    column("usable_at", _AT),
    column("removed_at", _AT),
)
_ROWS: Final = Rows(AddressView, _ADDRESSES)
_OF: Final = _ADDRESSES.c
_ALL: Final = select(*_ROWS.columns)

_LOCK: Final = text("SELECT pg_advisory_xact_lock(hashtextextended('address-book:' || :merchant_id, 0))")


def current(tx: Session | Connection, merchant_id: UUID) -> list[AddressView]:
    """Returns the addresses that are in the merchant's book, newest first."""
    wanted = _ALL.where(_OF.merchant_id == merchant_id, _OF.removed_at.is_(None))
    return _ROWS.all(tx.execute(wanted.order_by(_OF.created_at.desc(), _OF.id.desc())))


def lock_book(tx: Session, merchant_id: UUID) -> None:
    """Makes callers that add to this book wait for each other, until their own transaction ends."""
    tx.execute(_LOCK, {"merchant_id": str(merchant_id)})


def counts(tx: Session, merchant_id: UUID, *, since: datetime) -> tuple[int, int]:
    """Returns the numbers of addresses in the book, and of those added since then, removed ones included."""
    counted = select(
        func.count().filter(_OF.removed_at.is_(None)), func.count().filter(_OF.created_at >= since)
    )
    in_book, added = tx.execute(counted.where(_OF.merchant_id == merchant_id)).one()
    return in_book, added


def add(tx: Session, address: AddressView) -> None:
    """IntegrityError `uq_withdrawal_addresses_current` when it is in the book."""
    tx.execute(insert(_ADDRESSES).values(asdict(address)))


def to_use(tx: Session, merchant_id: UUID, address_id: UUID) -> AddressView | None:
    """Returns the merchant's own address, in the book or removed. It can't be removed until this transaction ends."""
    wanted = _ALL.where(_OF.id == address_id, _OF.merchant_id == merchant_id)
    return _ROWS.one_or_none(tx.execute(wanted.with_for_update(read=True)))


def locked(tx: Session, address_id: UUID) -> AddressView | None:
    """Returns an address of any merchant, locked until this transaction ends."""
    return _ROWS.one_or_none(tx.execute(_ALL.where(_OF.id == address_id).with_for_update()))


def remove(tx: Session, address_id: UUID, *, at: datetime) -> None:
    tx.execute(update(_ADDRESSES).where(_OF.id == address_id).values(removed_at=at))
