"""API keys: the merchant of one, and the values that the master keys protect."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, bindparam, func, select, update
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.db import prepared
from kit.db.database import Database, table_of
from kit.db.prepared import Prepared
from kit.db.rows import Rows
from services.identity.domain import merchants as domain
from services.identity.models import ApiKey, LookupKey, Merchant
from services.identity.store.merchants import MERCHANT, MERCHANTS

ONLY = 1  # the id of the only lookup key


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The merchant who presented a key, the key's id and scopes, and their seal."""

    key_id: UUID
    merchant: domain.Merchant
    scopes: Sequence[str]
    seal: bytes | None


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """The encrypted secret of `key_id`, which signs webhooks of `merchant_id` for a caller that prefers
    `preferred_key_id`; they differ when the preferred one is not active.
    """

    merchant_id: UUID
    preferred_key_id: UUID | None
    key_id: UUID
    sealed: bytes


_KEY_HOLDER = (
    MERCHANT.add_columns(ApiKey.id.label("key_id"), ApiKey.scopes, ApiKey.seal)
    .join(ApiKey, ApiKey.merchant_id == Merchant.id)
    .where(ApiKey.key_hash == bindparam("key_hash"), ApiKey.deactivated_at.is_(None))
)


def _key_holder(*columns: Any) -> KeyHolder:
    *merchant, key_id, scopes, seal = columns
    return KeyHolder(key_id, MERCHANTS.make(*merchant), scopes, seal)


_HOLDER_OF_ACTIVE_KEY = Prepared(
    "holder_of_active_key",
    str(_KEY_HOLDER.compile(dialect=postgresql.dialect(paramstyle="named"))),  # type: ignore[no-untyped-call]  # SQLAlchemy's gap
    {"key_hash": "bytea"},
    _key_holder,
)


def holder_of_active_key(db: Database, key_hash: bytes) -> KeyHolder | None:
    """Reads everything that Authenticate needs in one statement: it is the most frequent call."""
    return db.one_or_none(_HOLDER_OF_ACTIVE_KEY, {"key_hash": key_hash})


def sealed_lookup_key(connection: Connection) -> bytes | None:
    return connection.scalar(select(LookupKey.sealed).where(LookupKey.id == ONLY))


def sealed_lookup_key_or_new(tx: Session, *, sealed: bytes, at: datetime) -> bytes:
    """Returns the lookup key, after storing `sealed` as it if there was none. Concurrent first calls wait for each
    other.
    """
    tx.execute(insert(LookupKey).values(id=ONLY, sealed=sealed, created_at=at).on_conflict_do_nothing())
    return tx.execute(select(LookupKey.sealed).where(LookupKey.id == ONLY)).scalar_one()


_API_KEYS = Rows(domain.ApiKey, table_of(ApiKey))


def api_keys_active_first(tx: Session, merchant_id: UUID, *, limit: int) -> list[domain.ApiKey]:
    """Returns the keys, active ones first, each newest first."""
    keys = select(*_API_KEYS.columns).where(ApiKey.merchant_id == merchant_id)
    active_first = keys.order_by(ApiKey.deactivated_at.is_not(None), ApiKey.id.desc())
    return _API_KEYS.all(tx.execute(active_first.limit(limit)))


def newest_api_key_id(tx: Session, merchant_id: UUID) -> UUID | None:
    """Returns the id of the merchant's newest key, which may be deactivated."""
    newest = select(ApiKey.id).where(ApiKey.merchant_id == merchant_id).order_by(ApiKey.id.desc())
    return tx.scalar(newest.limit(1))


def count_of_active_keys(tx: Session, merchant_id: UUID) -> int:
    of_merchant = (ApiKey.merchant_id == merchant_id, ApiKey.deactivated_at.is_(None))
    return tx.scalars(select(func.count()).select_from(ApiKey).where(*of_merchant)).one()


def api_key_to_change(tx: Session, key_id: UUID) -> domain.ApiKey | None:
    """Returns the key, locked until the transaction ends."""
    key = select(*_API_KEYS.columns).where(ApiKey.id == key_id)
    return _API_KEYS.one_or_none(tx.execute(key.with_for_update()))


def api_key_deactivated(tx: Session, key_id: UUID, *, at: datetime) -> domain.ApiKey:
    """Returns the key, deactivated. Raises NoResultFound."""
    deactivated = update(ApiKey).where(ApiKey.id == key_id).values(deactivated_at=at)
    return _API_KEYS.make(*tx.execute(deactivated.returning(*_API_KEYS.columns)).one())


def replace_api_key(tx: Session, key_id: UUID, *, by: UUID) -> None:
    """Names the key that replaces it."""
    tx.execute(update(ApiKey).where(ApiKey.id == key_id).values(replaced_by=by))


_SIGNING_SECRETS: Final = Prepared(
    "signing_secrets",
    """
    SELECT query.merchant_id, query.preferred_key_id, signing.id AS key_id, signing.sealed_secret AS sealed
    FROM unnest(:merchant_ids, :preferred_key_ids) AS query (merchant_id, preferred_key_id)
    CROSS JOIN LATERAL (
        SELECT id, sealed_secret
        FROM api_keys
        WHERE api_keys.merchant_id = query.merchant_id AND deactivated_at IS NULL
        ORDER BY id IS NOT DISTINCT FROM query.preferred_key_id DESC, id DESC
        LIMIT 1
    ) AS signing
    """,
    {"merchant_ids": "uuid[]", "preferred_key_ids": "uuid[]"},
    lambda of, preferred, key_id, sealed: SealedSecret(of, preferred, key_id, bytes(sealed)),
)


def signing_secrets(
    connection: Connection, queries: Sequence[tuple[UUID, UUID | None]]
) -> list[SealedSecret]:
    """Returns for each (merchant, preferred key) that key while it is active, else the merchant's newest active one.

    A merchant without an active key has no row.
    """
    parameters = {
        "merchant_ids": [merchant_id for merchant_id, _ in queries],
        "preferred_key_ids": [preferred for _, preferred in queries],
    }
    return prepared.rows(connection, _SIGNING_SECRETS, parameters)


# -- the values that the master keys protect


def api_keys_after(tx: Session, key_id: UUID | None, *, limit: int) -> Sequence[ApiKey]:
    """Returns the next rows in the order of their ids, locked."""
    keys = select(ApiKey).order_by(ApiKey.id).limit(limit).with_for_update()
    return tx.scalars(keys if key_id is None else keys.where(ApiKey.id > key_id)).all()


def lookup_key_to_change(tx: Session) -> LookupKey | None:
    return tx.scalar(select(LookupKey).with_for_update())
