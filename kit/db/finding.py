"""The search in one database: ids by their beginning, and things by their texts.

A service gives its searches; each reads an index and returns no more rows than it is given as a limit.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as of_class
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, SQLColumnExpression, func, literal_column, select
from sqlalchemy.orm import InstrumentedAttribute

from kit.base.ids import ids_beginning_with

COMPLETED_MOST: Final = 10
FOUND_DIGITS: Final = 8
"""The fewest digits of an id that a search takes for its beginning: a shorter number is rather an amount."""

_WORDS: Final[ColumnElement[Any]] = literal_column("'simple'::regconfig")


@dataclass(frozen=True, kw_only=True)
class Found:
    """One result of a search: a thing whose `field` matches the text; `value` is the whole value of that field.

    `facts` are more of its values, by the names of other messages' fields: merchant_id, external_id, amount.
    """

    kind: str
    id: str
    field: str
    value: str
    status: str = ""
    created_at: datetime
    facts: Mapping[str, str] = of_class(default_factory=dict)


Ids = Mapping[str, InstrumentedAttribute[UUID]]
"""The column with the ids of each kind of thing."""

Search = Callable[[Connection, str, int], Sequence[Found]]
"""Returns at most so many things that have the text."""


@dataclass(frozen=True)
class Part:
    """The things that one search found. `may_have_more` names the kind and field, as "invoice amount", when it did not
    read all that may have the text; else it is empty.
    """

    things: Sequence[Found] = ()
    may_have_more: str = ""


OwnSearch = Callable[[Connection, UUID, str, int], Part]
"""Returns at most so many things of one merchant that have the text, by what its members may see."""


def begins_like(column: SQLColumnExpression[UUID], text: str) -> ColumnElement[bool] | None:
    """Returns the condition that an id begins like the text of a search; None when no id can."""
    bounds = ids_beginning_with(text)
    if bounds is None or len(text.replace("-", "")) < FOUND_DIGITS:
        return None
    return column.between(*bounds)


def completed(
    connection: Connection, column: InstrumentedAttribute[UUID], least: UUID, greatest: UUID
) -> Sequence[UUID]:
    """Returns the first ids between these two, one more than COMPLETED_MOST when there are more."""
    query = select(column).where(column.between(least, greatest)).order_by(column)
    return connection.execute(query.limit(COMPLETED_MOST + 1)).scalars().all()


def words_of(column: Any) -> ColumnElement[Any]:
    """Returns the expression of an index on the words of a text, in any alphabet and either case."""
    return func.to_tsvector(_WORDS, column)


def has_words_like(column: Any, text: str) -> ColumnElement[bool] | None:
    """Returns the condition that a text has words that begin like each word of `text`; None when it has no word.

    The text is quoted for PostgreSQL, which parses it like the column: a name with a hyphen is found by it.
    """
    words = [each for each in text.split() if re.search(r"\w", each)]
    if not words:
        return None
    quoted = " & ".join("'{}':*".format(each.replace("\\", "").replace("'", "''")) for each in words)
    return words_of(column).op("@@")(func.to_tsquery(_WORDS, quoted))
