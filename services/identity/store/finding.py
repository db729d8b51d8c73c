"""The operator's search: merchants by name, id and the owner's e-mail address, keys by id; for admins people by id and
e-mail address.
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, select

from kit.audit import approval_lists
from kit.db.finding import Found, Ids, Search, begins_like, has_words_like
from services.identity.models import ApiKey, Invitation, Merchant, Owner, Person, Session

IDS: Final[Ids] = {"merchant": Merchant.id, "key": ApiKey.id}
IDS_OF_PEOPLE: Final[Ids] = {"person": Person.id, "invitation": Invitation.id, "session": Session.id}


def _people(
    connection: Connection, condition: ColumnElement[bool] | None, limit: int, place: str, column: str
) -> Sequence[Found]:
    if condition is None:
        return ()
    columns = (Person.id, Person.email, Person.name, Person.created_at, Person.disabled_at)
    query = select(*columns).where(condition).order_by(Person.id.desc()).limit(limit)
    return [
        Found(
            kind="person",
            id=str(row.id),
            field=place,
            value=str(getattr(row, column)),
            status="active" if row.disabled_at is None else "disabled",
            created_at=row.created_at,
            facts={"email": row.email, "name": row.name},
        )
        for row in connection.execute(query)
    ]


def _people_by_id(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    return _people(connection, begins_like(Person.id, text), limit, "id", "id")


def _people_by_email(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    condition = Person.email == text.lower() if "@" in text else None
    return _people(connection, condition, limit, "email", "email")


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


SEARCHES: Final[Sequence[Search]] = (
    _merchants_by_name,
    _merchants_by_id,
    _merchants_by_owner,
    _keys_by_id,
    approval_lists.by_id,
)
SEARCHES_OF_PEOPLE: Final[Sequence[Search]] = (_people_by_id, _people_by_email)
