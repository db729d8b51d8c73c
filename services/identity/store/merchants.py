"""Merchants, their owners, and the categories."""

from collections.abc import Iterator, Mapping, Sequence
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
from kit.db.database import Database, table_of
from kit.db.finding import has_words_like
from kit.db.lists import in_span
from kit.db.prepared import Prepared
from kit.db.rows import Rows
from services.identity.domain import merchants as domain
from services.identity.domain.merchants import MerchantStatus
from services.identity.models import Category, Merchant, Owner

MERCHANTS = Rows(
    domain.Merchant,
    table_of(Merchant),
    merchant_id=Merchant.id,
    owner_email=Owner.email,
    owner_blocked=Owner.blocked_at.is_not(None),
    category_commission=Category.commission,
    refunds_return_commission=func.coalesce(Category.refunds_return_commission, false()),
)
MERCHANT: Select[Any] = (
    select(*MERCHANTS.columns)
    .select_from(Merchant)
    .join(Owner, Owner.id == Merchant.owner_id)
    .outerjoin(Category, Category.code == Merchant.category_code)
)

_WHERE_ID = MERCHANT.where(Merchant.id == bindparam("id"))
_MERCHANT_BY_ID = Prepared(
    "merchant_by_id",
    str(_WHERE_ID.compile(dialect=postgresql.dialect(paramstyle="named"))),  # type: ignore[no-untyped-call]  # SQLAlchemy's gap
    {"id": "uuid"},
    MERCHANTS.make,
)


def merchant_by_id(db: Database, merchant_id: UUID) -> domain.Merchant | None:
    """Returns the merchant, read outside of any transaction: every new deal calls this."""
    return db.one_or_none(_MERCHANT_BY_ID, {"id": merchant_id})


def merchant(tx: Session, merchant_id: UUID) -> domain.Merchant | None:
    return MERCHANTS.one_or_none(tx.execute(MERCHANT.where(Merchant.id == merchant_id)))


def merchants_newest_first(
    connection: Connection, filters: domain.MerchantFilter, *, older_than: UUID | None, limit: int
) -> list[domain.Merchant]:
    page = MERCHANT.where(*_conditions(filters)).order_by(Merchant.id.desc())  # ids grow with time
    if older_than is not None:
        page = page.where(Merchant.id < older_than)
    return MERCHANTS.all(connection.execute(page.limit(limit)))


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
    """Returns the row, locked until the transaction ends."""
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


# -- categories


_CATEGORIES = Rows(domain.Category, table_of(Category))


def put_category(tx: Session, category: domain.Category, *, at: datetime) -> None:
    """Creates the category, or replaces its values."""
    returned = category.refunds_return_commission
    values = {"commission": category.commission, "refunds_return_commission": returned, "updated_at": at}
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
