"""Every query of the merchants service, named by its result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    false,
    func,
    select,
    update,
)
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.base.ids import new_id
from kit.base.pictures import Picture
from kit.db import prepared
from kit.db.database import Database, table_of
from kit.db.finding import Found, Ids, Search, begins_like, has_words_like
from kit.db.lists import in_span
from kit.db.prepared import Prepared
from kit.db.rows import Rows
from services.merchants import domain
from services.merchants.domain import MerchantStatus
from services.merchants.models import ApiKey, Category, Logo, LookupKey, Merchant, Owner

ONLY = 1  # the id of the only lookup key


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """The merchant who presented a key, and the key's id."""

    key_id: UUID
    merchant: domain.Merchant


@dataclass(frozen=True, slots=True)
class SealedSecret:
    """The encrypted secret of `key_id`, which signs webhooks of `merchant_id` for a caller that prefers
    `preferred_key_id`; they differ when the preferred one is not active.
    """

    merchant_id: UUID
    preferred_key_id: UUID | None
    key_id: UUID
    sealed: bytes


# -- the merchant of a key

_MERCHANTS = Rows(
    domain.Merchant,
    table_of(Merchant),
    merchant_id=Merchant.id,
    owner_email=Owner.email,
    owner_blocked=Owner.blocked_at.is_not(None),
    category_commission=Category.commission,
)
_MERCHANT: Select[Any] = (
    select(*_MERCHANTS.columns)
    .select_from(Merchant)
    .join(Owner, Owner.id == Merchant.owner_id)
    .outerjoin(Category, Category.code == Merchant.category_code)
)

_KEY_HOLDER = (
    _MERCHANT.add_columns(ApiKey.id.label("key_id"))
    .join(ApiKey, ApiKey.merchant_id == Merchant.id)
    .where(ApiKey.key_hash == bindparam("key_hash"), ApiKey.deactivated_at.is_(None))
)


def _key_holder(*columns: Any) -> KeyHolder:
    *merchant, key_id = columns
    return KeyHolder(key_id, _MERCHANTS.make(*merchant))


_WHERE_ID = _MERCHANT.where(Merchant.id == bindparam("id"))
_MERCHANT_BY_ID = Prepared(
    "merchant_by_id",
    str(_WHERE_ID.compile(dialect=postgresql.dialect(paramstyle="named"))),  # type: ignore[no-untyped-call]  # SQLAlchemy's gap
    {"id": "uuid"},
    _MERCHANTS.make,
)
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


# -- merchants and owners


def merchant_by_id(db: Database, merchant_id: UUID) -> domain.Merchant | None:
    """Returns the merchant, read outside of any transaction: every new deal calls this."""
    return db.one_or_none(_MERCHANT_BY_ID, {"id": merchant_id})


def merchant(tx: Session, merchant_id: UUID) -> domain.Merchant | None:
    return _MERCHANTS.one_or_none(tx.execute(_MERCHANT.where(Merchant.id == merchant_id)))


def merchants_newest_first(
    connection: Connection, filters: domain.MerchantFilter, *, older_than: UUID | None, limit: int
) -> list[domain.Merchant]:
    page = _MERCHANT.where(*_conditions(filters)).order_by(Merchant.id.desc())  # ids grow with time
    if older_than is not None:
        page = page.where(Merchant.id < older_than)
    return _MERCHANTS.all(connection.execute(page.limit(limit)))


_IS: Final[Mapping[MerchantStatus, ColumnElement[bool]]] = {
    MerchantStatus.INACTIVE: Merchant.activated_at.is_(None) & Merchant.banned_at.is_(None),
    MerchantStatus.ACTIVE: Merchant.activated_at.is_not(None) & Merchant.banned_at.is_(None),
    MerchantStatus.BANNED: Merchant.banned_at.is_not(None),
}
"""`domain.status_of` as conditions."""


def _conditions(filters: domain.MerchantFilter) -> Iterator[ColumnElement[bool]]:
    yield from in_span(Merchant.created_at, filters.created_from, filters.created_before)
    if filters.status is not None:
        yield _IS[filters.status]
    if filters.owner_blocked:
        yield Owner.blocked_at.is_not(None)
    if filters.owner_email:
        yield Owner.email == filters.owner_email
    if filters.category_code:
        yield Merchant.category_code == filters.category_code
    if filters.name:
        words = has_words_like(Merchant.name, filters.name)
        yield false() if words is None else words


def names_of_merchants(connection: Connection, merchant_ids: Sequence[UUID]) -> dict[UUID, str]:
    rows = connection.execute(select(Merchant.id, Merchant.name).where(Merchant.id.in_(merchant_ids)))
    return {row.id: row.name for row in rows}


def merchant_to_change(tx: Session, merchant_id: UUID) -> Merchant | None:
    """Returns the row, locked until the transaction ends; API keys may be added to the merchant meanwhile."""
    return tx.scalar(select(Merchant).where(Merchant.id == merchant_id).with_for_update(key_share=True))


_OWNERS = Rows(domain.Owner, table_of(Owner))
_COUNTED = (
    select(Merchant.id).where(Merchant.owner_id == Owner.id).limit(bindparam("counted")).correlate(Owner)
)
_OWNER_FACTS = Rows(
    domain.OwnerFacts,
    table_of(Owner),
    merchants=select(func.count()).select_from(_COUNTED.subquery()).scalar_subquery(),
)


def owner_by_id_or_email(
    connection: Connection, owner: UUID | str, *, counted: int
) -> domain.OwnerFacts | None:
    """Returns the owner with the number of its merchants, of which at most `counted` are counted."""
    known_by = Owner.id if isinstance(owner, UUID) else Owner.email
    found = select(*_OWNER_FACTS.columns).where(known_by == owner)
    return _OWNER_FACTS.one_or_none(connection.execute(found, {"counted": counted}))


def owner_to_change(tx: Session, email: str) -> domain.Owner | None:
    """Returns the owner, locked until the transaction ends; merchants may be added meanwhile."""
    owner = select(*_OWNERS.columns).where(Owner.email == email)
    return _OWNERS.one_or_none(tx.execute(owner.with_for_update(key_share=True)))


def owner_with_block(tx: Session, email: str, blocked_at: datetime | None) -> domain.Owner:
    """Returns the owner with the block of that time, or without one. Raises NoResultFound."""
    block = update(Owner).where(Owner.email == email).values(blocked_at=blocked_at)
    return _OWNERS.make(*tx.execute(block.returning(*_OWNERS.columns)).one())


def id_of_owner_or_new(tx: Session, email: str, *, at: datetime) -> UUID:
    """Returns the owner's id; makes the owner if there is none. A concurrent call with the same address waits and
    finds it.
    """
    tx.execute(
        insert(Owner)
        .values(id=new_id(), email=email, created_at=at)
        .on_conflict_do_nothing(index_elements=[Owner.email])
    )
    return tx.execute(select(Owner.id).where(Owner.email == email)).scalar_one()


# -- logos


def keep_logo(tx: Session, logo: Picture, *, at: datetime) -> None:
    """Stores the logo unless it is there: the digest names the content, so the stored one is equal."""
    new = insert(Logo).values(
        digest=logo.digest, content_type=logo.content_type, content=logo.content, created_at=at
    )
    tx.execute(new.on_conflict_do_nothing())


_LOGOS = Rows(domain.Logo, table_of(Logo))


def logo(connection: Connection, digest: str) -> domain.Logo | None:
    return _LOGOS.one_or_none(connection.execute(select(*_LOGOS.columns).where(Logo.digest == digest)))


# -- API keys


_API_KEYS = Rows(domain.ApiKey, table_of(ApiKey))


def api_keys_newest_first(tx: Session, merchant_id: UUID, *, limit: int) -> list[domain.ApiKey]:
    keys = select(*_API_KEYS.columns).where(ApiKey.merchant_id == merchant_id)
    return _API_KEYS.all(tx.execute(keys.order_by(ApiKey.id.desc()).limit(limit)))


def api_key_to_change(tx: Session, key_id: UUID) -> domain.ApiKey | None:
    """Returns the key, locked until the transaction ends."""
    key = select(*_API_KEYS.columns).where(ApiKey.id == key_id)
    return _API_KEYS.one_or_none(tx.execute(key.with_for_update()))


def api_key_deactivated(tx: Session, key_id: UUID, *, at: datetime) -> domain.ApiKey:
    """Returns the key, deactivated. Raises NoResultFound."""
    deactivated = update(ApiKey).where(ApiKey.id == key_id).values(deactivated_at=at)
    return _API_KEYS.make(*tx.execute(deactivated.returning(*_API_KEYS.columns)).one())


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


# -- categories


_CATEGORIES = Rows(domain.Category, table_of(Category))


def put_category(tx: Session, category: domain.Category, *, at: datetime) -> None:
    """Creates the category, or replaces its commission."""
    values = {"commission": category.commission, "updated_at": at}
    tx.execute(
        insert(Category)
        .values(code=category.code, **values)
        .on_conflict_do_update(index_elements=[Category.code], set_=values)
    )


def category_to_change(tx: Session, code: str) -> domain.Category | None:
    """Returns the category, locked until the transaction ends."""
    category = select(*_CATEGORIES.columns).where(Category.code == code)
    return _CATEGORIES.one_or_none(tx.execute(category.with_for_update()))


def has_category(tx: Session, code: str) -> bool:
    return tx.scalar(select(Category.code).where(Category.code == code)) is not None


def categories(tx: Session, *, limit: int) -> list[domain.Category]:
    return _CATEGORIES.all(tx.execute(select(*_CATEGORIES.columns).order_by(Category.code).limit(limit)))


# -- the operator's search: merchants by name, id and the owner's e-mail address, keys by id


IDS: Final[Ids] = {"merchant": Merchant.id, "key": ApiKey.id}

_TO_FIND = select(
    Merchant.id, Merchant.name, Merchant.created_at, Merchant.activated_at, Merchant.banned_at, Owner.email
).join(Owner, Owner.id == Merchant.owner_id)


def _found_merchants(
    connection: Connection, condition: ColumnElement[bool] | None, limit: int, place: str, column: str
) -> Sequence[Found]:
    if condition is None:
        return ()
    query = _TO_FIND.where(condition).order_by(Merchant.id.desc()).limit(limit)
    return [
        Found(
            kind="merchant",
            id=str(row.id),
            field=place,
            value=str(getattr(row, column)),
            status=_status(row),
            created_at=row.created_at,
            facts={"merchant_id": str(row.id), "name": row.name, "owner_email": row.email},
        )
        for row in connection.execute(query)
    ]


def _status(row: Any) -> str:
    if row.banned_at is not None:
        return "banned"
    return "inactive" if row.activated_at is None else "active"


def _merchants_by_name(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    return _found_merchants(connection, has_words_like(Merchant.name, text), limit, "name", "name")


def _merchants_by_id(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    return _found_merchants(connection, begins_like(Merchant.id, text), limit, "id", "id")


def _merchants_by_owner(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    condition = Owner.email == text.lower() if "@" in text else None
    return _found_merchants(connection, condition, limit, "owner", "email")


def _keys_by_id(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    condition = begins_like(ApiKey.id, text)
    if condition is None:
        return ()
    return [
        Found(
            kind="key",
            id=str(row.id),
            field="id",
            value=str(row.id),
            status="active" if row.deactivated_at is None else "deactivated",
            created_at=row.created_at,
            facts={"merchant_id": str(row.merchant_id), "name": row.name},
        )
        for row in connection.execute(select(ApiKey).where(condition).limit(limit))
    ]


SEARCHES: Final[Sequence[Search]] = (_merchants_by_name, _merchants_by_id, _merchants_by_owner, _keys_by_id)
