"""The list of acts, newest first. Each filter has an index (kit/db/migrations/acts.py)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Connection, text

from kit.audit.acts import COLUMNS
from kit.audit.chaining import earliest_id
from kit.base.ids import parse_id
from kit.db.database import Database


@dataclass(frozen=True, slots=True)
class Act:
    """A row of the table."""

    id: UUID
    at: datetime
    actor_kind: str
    actor_name: str
    person_id: UUID | None
    session_id: UUID | None
    surface: str
    on_behalf_of: str
    act: str
    object: str
    merchant_id: UUID | None
    changes: Sequence[Sequence[str]]
    note: str
    request_id: str
    refused: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """The acts to list; an empty filter matches all.

    author        UUID of a person, e-mail address (also of a person that the command line named), or USER@HOST
    act, object   the whole, or the part before the dot or the colon
    since, until  from this time on, before this time
    authors_surface  the surface of the author: a member finds no act by the name of an operator
    without       acts that are left out
    """

    author: str = ""
    authors_surface: str = ""
    without: Sequence[str] = ()
    act: str = ""
    object: str = ""
    merchant_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


def list_acts(db: Database, wanted: Filter, *, after: UUID | None, limit: int) -> list[Act]:
    """Returns the newest matching acts, those before the act `after` if it is given."""
    conditions, values = _conditions(wanted, after)
    statement = f"SELECT {', '.join(COLUMNS)} FROM acts {conditions} ORDER BY id DESC LIMIT :limit"  # noqa: S608
    with db.autocommit() as connection:
        return [Act(*row) for row in connection.execute(text(statement), values | {"limit": limit})]


_ON_OBJECTS = text(
    f"SELECT {', '.join(COLUMNS)} FROM acts WHERE object = ANY (:objects) AND :act IN ('', act)"  # noqa: S608
    " ORDER BY id DESC LIMIT :limit"
)


def newest_acts_on(connection: Connection, objects: Sequence[str], *, limit: int, act: str = "") -> list[Act]:
    """Returns the newest acts on these objects, newest first; those of one name if `act` gives it."""
    rows = connection.execute(_ON_OBJECTS, {"objects": list(objects), "limit": limit, "act": act})
    return [Act(*row) for row in rows]


def _conditions(wanted: Filter, after: UUID | None) -> tuple[str, dict[str, Any]]:
    """Returns the WHERE of the statement, made of constants, and its values."""
    conditions: list[str] = []
    values: dict[str, Any] = {}

    def add(condition: str, **given: Any) -> None:
        conditions.append(condition)
        values.update(given)

    if person_id := parse_id(wanted.author):
        add("person_id = :person_id", person_id=person_id)
    elif wanted.author:
        name = wanted.author.removeprefix("cli:")
        add("(actor_name = :author OR (on_behalf_of = :author AND on_behalf_of <> ''))", author=name)
    if wanted.authors_surface:
        add("surface = :surface", surface=wanted.authors_surface)
    if wanted.without:
        add("act <> ALL (:without)", without=list(wanted.without))
    for column, value, mark in (("act", wanted.act, "."), ("object", wanted.object, ":")):
        if mark in value:
            add(f"{column} = :{column}", **{column: value})
        elif value:  # all that begins with it: the character after the mark ends them
            start, end = f"{value}{mark}", f"{value}{chr(ord(mark) + 1)}"
            add(
                f"{column} >= :{column}_start AND {column} < :{column}_end",
                **{f"{column}_start": start, f"{column}_end": end},
            )
    if wanted.merchant_id is not None:
        add("merchant_id = :merchant_id", merchant_id=wanted.merchant_id)
    if wanted.since is not None:
        add("id >= :since", since=earliest_id(wanted.since))
    if wanted.until is not None:
        add("id < :until", until=earliest_id(wanted.until))
    if after is not None:
        add("id < :after", after=after)
    return (f"WHERE {' AND '.join(conditions)}" if conditions else ""), values
