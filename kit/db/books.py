"""The verification of a service's own books, page by page. Each row is compared with its records
(kit.db.migrations.guards) and with the values that must follow from it.

A service declares a `Part` per table. Its statements are written apart from the code that writes the rows, so that a
mistake there is not repeated here.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.orm import Session

from kit.base.ids import parse_id
from kit.db.database import Database, bound_statements

MAX_PROBLEMS: Final = 100
STATEMENT_TIMEOUT_SECONDS: Final = 50
"""Longer than other statements may take: a page may join with many rows. Shorter than the caller waits."""

# Below the first and at the last possible key of a type.
_ENDS: Final = {
    "uuid": ("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    "bigint": ("-1", str(2**63 - 1)),
    "date": ("0001-01-01", "9999-12-31"),
}


@dataclass(frozen=True)
class Part:
    """One table, or the rows that belong to its rows, in the order of a uuid, a number or a day.

    name        the name for operators: "deals"
    one         the name of one row in a problem, before its id: "deal"
    table       has the column `key` of type `key_type`, uuid, bigint or date, which orders the pages
    page_most   the most keys of one page; 0: as many as the caller wants
    kind        the kind of its records; empty: it has none
    subject     the column that its records refer to; empty: `key`
    row         the column that distinguishes the rows of one subject, if there are several
    made_at     the column with the time when the row was made
    kept        columns that must not change after the row was made, even when the records show the change
    follows     statements for other rules; each returns rows (id, field, found, due) for keys above :first up to :last
    """

    name: str
    one: str
    table: str
    key: str = "id"
    key_type: str = "uuid"
    page_most: int = 0
    kind: str = ""
    subject: str = ""
    row: str = ""
    made_at: str = "created_at"
    kept: Sequence[str] = ()
    follows: Sequence[str] = ()


@dataclass(frozen=True)
class Problem:
    """One value that is wrong: the value found, and the value due."""

    subject: str
    field: str
    found: str
    due: str


@dataclass(frozen=True)
class Page:
    """The result of one page. If `more`, the next page begins after the key `last`."""

    checked: int
    unrecorded: int
    problems: Sequence[Problem]
    last: str
    more: bool


def is_key(part: Part, text: str) -> bool:
    """Returns whether the text can be a key of this part."""
    if part.key_type == "uuid":
        return parse_id(text) is not None
    if part.key_type == "date":
        return _is_day(text)
    return text.isdecimal() and len(text) < 19


def _is_day(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def check_page(db: Database, part: Part, *, after: str, limit: int) -> Page:
    """Checks the next rows of a part after the key `after` (empty: from the first), all read at one moment."""
    with db.transaction() as tx:
        tx.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        bound_statements(tx, seconds=STATEMENT_TIMEOUT_SECONDS)
        start, end = _ENDS[part.key_type]
        if part.table.isidentifier() and not _exists(tx, part.table):  # a query reads tables that are there
            return Page(0, 0, (), end, more=False)
        first, limit = after or start, min(limit, part.page_most or limit)
        keys = _keys(tx, part, first, limit)
        more = len(keys) == limit
        last = keys[-1] if more else end
        span = {"first": first, "last": last}
        problems = [
            Problem(f"{part.one} {id}", field, str(found), str(due))
            for statement in part.follows
            for id, field, found, due in tx.execute(text(statement), span)
        ]
        unrecorded = 0
        if part.kind and _exists(tx, "records"):
            recorded, unrecorded = _against_records(tx, part, span)
            problems = recorded + problems
    # A statement may find the same problem as a record.
    return Page(len(keys), unrecorded, list(dict.fromkeys(problems))[:MAX_PROBLEMS], last, more)


def _keys(tx: Session, part: Part, first: str, limit: int) -> list[str]:
    statement = (
        f"SELECT DISTINCT {part.key} FROM {part.table} WHERE {part.key} > :first ORDER BY 1 LIMIT :limit"  # noqa: S608
    )
    return [str(key) for key in tx.scalars(text(statement), {"first": first, "limit": limit})]


def _exists(tx: Session, table: str) -> bool:
    """Returns false for a table that the schema of the version before does not have."""
    return tx.scalar(text("SELECT to_regclass('public.' || :table) IS NOT NULL"), {"table": table}) or False


# `entries` are the records. `totals` are the values that they add up to: the first record has the whole row, each later
# one the columns that changed. A row with `made_as` has its first values there instead of in a first record.
_RECORDS = """
WITH since AS (
  SELECT at FROM records WHERE kind = 'recorded' AND subject = :kind
), page AS (
  SELECT {subject}::text AS subject, {row} AS row, {made_at} AS made_at, to_jsonb(t) - '{{made_as}}'::text[] AS now,
         to_jsonb(t) -> 'made_as' AS made_as
  FROM {table} AS t WHERE {key} > CAST(:first AS {key_type}) AND {key} <= CAST(:last AS {key_type})
), entries AS (
  SELECT subject, number, facts, {row_of_facts} AS row
  FROM records WHERE kind = :kind AND {within}
), totals AS (
  SELECT subject, row, jsonb_object_agg(key, value ORDER BY number) AS facts
  FROM (
    SELECT subject, row, number, key, value FROM entries CROSS JOIN jsonb_each(facts)
    UNION ALL
    SELECT subject, row, 0, key, value FROM page CROSS JOIN jsonb_each(made_as) WHERE jsonb_typeof(made_as) = 'object'
  ) AS each
  GROUP BY subject, row
), compared AS (
  SELECT coalesce(page.subject, totals.subject) AS subject, coalesce(page.row, totals.row) AS row, now, facts, made_at
  FROM page FULL JOIN totals ON totals.subject = page.subject AND totals.row = page.row
), numbered AS (
  SELECT subject, count(*) AS records, max(number) AS last FROM entries GROUP BY subject
), changed AS (
  SELECT entries.subject, entries.number, key, value, totals.facts
  FROM entries CROSS JOIN jsonb_each(entries.facts) JOIN totals USING (subject, row)
  WHERE number > 1 AND key = ANY(:kept)
)
"""

_UNRECORDED = "SELECT count(*) FROM compared, since WHERE facts IS NULL AND made_at < since.at"

_WRONG = """
SELECT subject, row, 'row' AS field, 'deleted' AS found, 'its records: ' || left(facts::text, 200) AS due
FROM compared WHERE now IS NULL
UNION ALL
SELECT subject, row, 'record', 'none', 'one of each change'
FROM compared, since WHERE facts IS NULL AND made_at >= since.at
UNION ALL
SELECT subject, row, key, now ->> key, facts ->> key
FROM compared CROSS JOIN LATERAL jsonb_each(facts) AS fact (key, value)
WHERE NOT now @> facts AND now ? key AND now -> key <> value
UNION ALL
SELECT subject, '', 'records', records || ' records', last || ' records, numbered without a gap'
FROM numbered WHERE records <> last
UNION ALL
SELECT subject, '', key, value #>> '{}', 'as it was made; record ' || number || ' changed it'
FROM changed
LIMIT :limit
"""


_WITHIN = {
    "uuid": "subject > :first AND subject <= :last",
    # Other kinds may have subjects that are no numbers.
    "bigint": "CASE WHEN kind = :kind THEN CAST(subject AS bigint) > CAST(:first AS bigint)"
    " AND CAST(subject AS bigint) <= CAST(:last AS bigint) END",
}
# For tables whose subject is not the key: selects by the key in the first record. No index helps: for small tables.
_FIRST_WITHIN = """
subject IN (SELECT subject FROM records WHERE kind = :kind AND number = 1
            AND facts ->> '{key}' > :first AND facts ->> '{key}' <= :last)
"""


def _against_records(tx: Session, part: Part, span: dict[str, str]) -> tuple[list[Problem], int]:
    records = _RECORDS.format(
        key=part.key,
        subject=part.subject or part.key,
        within=_FIRST_WITHIN.format(key=part.key) if part.subject else _WITHIN[part.key_type],
        key_type=part.key_type,
        table=part.table,
        row=f"{part.row}::text" if part.row else "''",
        row_of_facts=f"facts ->> '{part.row}'" if part.row else "''",
        made_at=part.made_at,
    )
    values: dict[str, Any] = {**span, "kind": part.kind}
    wrong = tx.execute(
        text(f"{records} {_WRONG}"), values | {"kept": list(part.kept), "limit": MAX_PROBLEMS}
    ).all()
    unrecorded = tx.scalar(text(f"{records} {_UNRECORDED}"), values | {"kept": []}) or 0
    return [_problem(part, _Wrong(*row)) for row in wrong], unrecorded


@dataclass(frozen=True, slots=True)
class _Wrong:
    """A row of `_WRONG`."""

    subject: str
    row: str
    field: str
    found: str | None
    due: str | None


def _problem(part: Part, wrong: _Wrong) -> Problem:
    field = f"{part.row} {wrong.row}: {wrong.field}" if part.row and wrong.row else wrong.field
    found, due = _shown(wrong.found), _shown(wrong.due)
    if _NUMBER(found) and _NUMBER(due):  # JSON keeps the zeros that a statement trims
        found, due = (each.rstrip("0").rstrip(".") for each in (found, due))
    return Problem(f"{part.one} {wrong.subject}", field, found, due)


_NUMBER: Final = re.compile(r"-?[0-9]+\.[0-9]+").fullmatch


def _shown(value: str | None) -> str:
    return "nothing" if value is None else value
