"""Ids by their beginning; people by their id and e-mail address. Nothing else of people is searched."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import ColumnElement, Connection, select

from kit.db.finding import Found, Ids, Search, begins_like
from services.accounts.models import Invitation, Person, Session

IDS: Final[Ids] = {"person": Person.id, "invitation": Invitation.id, "session": Session.id}


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


def _by_id(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    return _people(connection, begins_like(Person.id, text), limit, "id", "id")


def _by_email(connection: Connection, text: str, limit: int) -> Sequence[Found]:
    condition = Person.email == text.lower() if "@" in text else None
    return _people(connection, condition, limit, "email", "email")


SEARCHES: Final[Sequence[Search]] = (_by_id, _by_email)
