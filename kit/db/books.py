"""The verification of a service's own books, page by page: each row is compared with the values that must follow.

A service declares a `Part` per table. Its rules are written apart from the code that writes the rows, so that a mistake
there is not repeated here.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.orm import Session

from kit.base.ids import parse_id
from kit.db.database import Database, bound_statements
from kit.db.reading import each_by_itself

MAX_PROBLEMS: Final = 100
PARTS_OF_PAGE: Final = 10
SHOWN_CHARACTERS: Final = 2000
STATEMENT_TIMEOUT_SECONDS: Final = 50
"""Longer than other statements may take: a page may join with many rows. Shorter than the caller waits."""

# Below the first and at the last possible key of a type.
_ENDS: Final = {
    "uuid": ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "bigint": ("0", str(2**63 - 1)),
    "text": ("", "\U0010ffff"),
}
_KEY_MOST_CHARACTERS: Final = 65_536

Difference = tuple[object, str, object, object]
"""The id of a row, a field, the value found and the value due."""
Follows = Callable[[Session, str, str], Iterable[Difference]]
"""Returns what is wrong in the rows with keys above the first text, up to the last one."""


@dataclass(frozen=True)
class Part:
    """One table, or the rows that belong to its rows, in the order of a uuid, a number or a text.

    name      the name for operators: "deals"
    one       the name of one row in a problem, before its id: "deal"
    table     has the column or expression `key` of type `key_type`, uuid, bigint or text, which orders the pages
    follows   the rules: statements that return rows (id, field, found, due) for keys above :first up to :last, and
              functions that return the same
    """

    name: str
    one: str
    table: str
    follows: Sequence[str | Follows]
    key: str = "id"
    key_type: str = "uuid"


@dataclass(frozen=True)
class Problem:
    """One value that is wrong: the value found, and the value due."""

    subject: str
    field: str
    found: str
    due: str


@dataclass(frozen=True)
class Page:
    """The result of one page. If `more`, the next page begins after the key `last`.

    unreadable  the rows that could not be read, with the error; everything else was
    """

    checked: int
    problems: Sequence[Problem]
    unreadable: Sequence[str]
    last: str
    more: bool


def is_key(part: Part, text: str) -> bool:
    """Returns whether the text can be a key of this part."""
    if part.key_type == "uuid":
        return parse_id(text) is not None
    if part.key_type == "bigint":
        return text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < 2**63
    return len(text) <= _KEY_MOST_CHARACTERS


def check_page(db: Database, part: Part, *, after: str, limit: int) -> Page:
    """Checks the next rows of a part after the key `after` (empty: from the first), all read at one moment. They are
    fewer than `limit` when more have too many problems for one answer. Those of rows come before those of missing rows.
    """
    with db.transaction() as tx:
        tx.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        bound_statements(tx, seconds=STATEMENT_TIMEOUT_SECONDS)
        start, end = _ENDS[part.key_type]
        first = after or start
        keys = _keys(tx, part, first, limit)
        more = len(keys) == limit
        odd = [] if after else _odd_keys(tx, part)
        last = keys[-1] if more else end
        unreadable: list[str] = []
        problems = [Problem(f"{part.one} {key}", "key", key, "one that the service makes") for key in odd]
        problems += [
            Problem(_shown(f"{part.one} {id}"), field, _shown(found), _shown(due))
            for rule in part.follows
            for id, field, found, due in each_by_itself(
                tx, partial(_differences, tx, rule), first=first, keys=keys, last=last, unreadable=unreadable
            )
        ]
    named = [f"{part.one} {each}" for each in dict.fromkeys(unreadable)]
    there = {f"{part.one} {key}" for key in keys}
    problems = sorted(dict.fromkeys(problems), key=lambda each: each.subject not in there)
    if max(len(problems), len(named)) > MAX_PROBLEMS and limit > 1:
        return check_page(db, part, after=after, limit=limit // PARTS_OF_PAGE or 1)
    if (left := len(problems) - MAX_PROBLEMS) > 0:
        problems[MAX_PROBLEMS:] = [Problem(part.name, "list of problems", f"cut: {left} more", "whole")]
    return Page(len(keys), problems, named[:MAX_PROBLEMS], last, more)


def _shown(value: object) -> str:
    """Cuts a long value: what many rows hold must fit in one answer."""
    text = str(value)
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"


def _keys(tx: Session, part: Part, first: str, limit: int) -> list[str]:
    key = ordered(part.key, part.key_type)
    statement = f"SELECT DISTINCT {key} FROM {part.table} WHERE {key} > :first ORDER BY 1 LIMIT :limit"  # noqa: S608
    return [str(key) for key in tx.scalars(text(statement), {"first": first, "limit": limit})]


def _odd_keys(tx: Session, part: Part) -> list[str]:
    """Returns keys that stand on no page: the service makes none of them."""
    key, (start, end) = ordered(part.key, part.key_type), _ENDS[part.key_type]
    statement = f"SELECT DISTINCT {key} FROM {part.table} WHERE {key} <= :start OR {key} > :end LIMIT :limit"  # noqa: S608
    found = tx.scalars(text(statement), {"start": start, "end": end, "limit": MAX_PROBLEMS})
    return [str(key) for key in found]


def ordered(key: str, key_type: str) -> str:
    """Returns the expression of a key in the order of its pages. That of texts is the same in each database."""
    return f'{key} COLLATE "C"' if key_type == "text" else key


def _differences(tx: Session, rule: str | Follows, first: str, last: str) -> Iterable[Difference]:
    if callable(rule):
        return rule(tx, first, last)
    found: Iterable[Any] = tx.execute(text(rule), {"first": first, "last": last})
    return found
