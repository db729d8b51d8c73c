"""The signing keys of actor tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, func, or_, select, update
from sqlalchemy.orm import Session as Tx

from kit.db.database import table_of
from kit.db.rows import Rows
from services.accounts.domain import KEY_OVERLAP
from services.accounts.models import SigningKey


@dataclass(frozen=True, slots=True)
class StoredKey:
    id: UUID
    public_key: bytes
    sealed_private_key: bytes
    created_at: datetime


_KEYS = Rows(StoredKey, table_of(SigningKey))


def known_keys(connection: Connection, *, now: datetime) -> list[StoredKey]:
    """Returns the newest key, and those before it that sign or whose tokens may still be alive; newest first."""
    counts = or_(SigningKey.replaced_at.is_(None), SigningKey.replaced_at > now - KEY_OVERLAP)
    return _KEYS.all(connection.execute(select(*_KEYS.columns).where(counts).order_by(SigningKey.id.desc())))


def newest_key(tx: Tx) -> StoredKey | None:
    current = select(*_KEYS.columns).where(SigningKey.replaced_at.is_(None))
    return _KEYS.one_or_none(tx.execute(current.order_by(SigningKey.id.desc()).limit(1)))


def lock_keys(tx: Tx) -> None:
    """Lets one transaction at a time make a key."""
    tx.execute(select(func.pg_advisory_xact_lock(func.hashtextextended("signing keys", 0))))


def add_key(tx: Tx, key: StoredKey) -> None:
    """Stores the newest key, which replaces the one before."""
    tx.execute(update(SigningKey).where(SigningKey.replaced_at.is_(None)).values(replaced_at=key.created_at))
    row = SigningKey(
        id=key.id,
        public_key=key.public_key,
        sealed_private_key=key.sealed_private_key,
        created_at=key.created_at,
    )
    tx.add(row)
    tx.flush()


def keys_to_reseal(tx: Tx) -> Sequence[SigningKey]:
    return tx.scalars(select(SigningKey).order_by(SigningKey.id).with_for_update()).all()
