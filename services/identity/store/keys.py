"""The signing keys of actor tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, func, or_, select, update
from sqlalchemy.orm import Session as Tx

from kit.base.seals import Seals
from kit.db.database import seals_of, table_of
from kit.db.rows import Rows
from services.identity.domain.people import KEY_OVERLAP
from services.identity.models import SigningKey
from services.identity.store.sealed import SIGNING_KEY, is_sealed, seal_of


@dataclass(frozen=True, slots=True)
class StoredKey:
    id: UUID
    public_key: bytes
    sealed_private_key: bytes
    created_at: datetime
    seal: bytes


_KEYS = Rows(StoredKey, table_of(SigningKey))


def known_keys(connection: Connection, *, now: datetime, seals: Seals) -> list[StoredKey]:
    """Returns the newest key, and those before it that sign or whose tokens may still be alive; newest first. A key
    that someone wrote into the database is none of them: its holder could be anyone.
    """
    counts = or_(SigningKey.replaced_at.is_(None), SigningKey.replaced_at > now - KEY_OVERLAP)
    rows = connection.execute(select(*_KEYS.columns).where(counts).order_by(SigningKey.id.desc()))
    return [each for each in _KEYS.all(rows) if _is_own(seals, each)]


def newest_key(tx: Tx) -> StoredKey | None:
    current = select(*_KEYS.columns).where(SigningKey.replaced_at.is_(None))
    seals = seals_of(tx)
    found = _KEYS.all(tx.execute(current.order_by(SigningKey.id.desc())))
    return next((each for each in found if _is_own(seals, each)), None)


def _is_own(seals: Seals, key: StoredKey) -> bool:
    return is_sealed(seals, key.seal, SIGNING_KEY, key.id, bytes(key.public_key), key.created_at)


def seal_of_key(seals: Seals, id: UUID, public_key: bytes, created_at: datetime) -> bytes:
    return seal_of(seals, SIGNING_KEY, id, public_key, created_at)


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
        seal=key.seal,
    )
    tx.add(row)
    tx.flush()


def keys_to_reseal(tx: Tx) -> Sequence[SigningKey]:
    return tx.scalars(select(SigningKey).order_by(SigningKey.id).with_for_update()).all()
