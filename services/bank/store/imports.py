"""Files of banks and their statements."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as insert_if_new
from sqlalchemy.orm import Session

from kit.db.database import table_of
from kit.db.rows import Rows
from services.bank.domain.proposals import ImportState
from services.bank.models import Import, Statement
from services.bank.store.views import ImportView, StatementView

_IMPORTS: Final = table_of(Import)
_STATEMENTS: Final = table_of(Statement)
_ROWS: Final = Rows(ImportView, _IMPORTS)
_STATEMENT_ROWS: Final = Rows(StatementView, _STATEMENTS, without={"has_gap"})
_OF: Final = _IMPORTS.c
_OF_IMPORTS: Final = text("""
WITH listed AS (
  SELECT statements.*, coalesce(
    (SELECT closed_on FROM statements AS earlier
     WHERE earlier.account = statements.account AND earlier.currency_code = statements.currency_code
       AND earlier.closing IS NOT NULL AND earlier.closed_on = statements.opened_on
       AND earlier.opened_on < statements.opened_on LIMIT 1),
    (SELECT closed_on FROM statements AS earlier
     WHERE earlier.account = statements.account AND earlier.currency_code = statements.currency_code
       AND earlier.closing IS NOT NULL AND earlier.closed_on < statements.opened_on
     ORDER BY earlier.closed_on DESC LIMIT 1)
  ) AS ended_on
  FROM statements WHERE statements.import_id = ANY(CAST(:ids AS uuid[]))
)
SELECT id, import_id, account, currency_code, number, opening, closing, opened_on, closed_on,
  opening IS NOT NULL AND ended_on IS NOT NULL AND NOT EXISTS (
    SELECT FROM statements AS earlier
    WHERE earlier.account = listed.account AND earlier.currency_code = listed.currency_code
      AND earlier.closed_on BETWEEN listed.ended_on AND listed.opened_on AND earlier.closing = listed.opening
      AND (earlier.number, earlier.opened_on, earlier.closed_on)
        IS DISTINCT FROM (listed.number, listed.opened_on, listed.closed_on)
  ) AS has_gap
FROM listed ORDER BY id
""")
"""A statement follows one that ended before it begins, or another one of the day. The same statement in a second file
does not count.
"""
_ONE_AT_A_TIME: Final = text("SELECT pg_advisory_xact_lock(hashtextextended('bank-file', 0))")


def add_if_new(tx: Session, values: dict[str, Any]) -> ImportView:
    """Returns the new import, or the earlier one of the same bytes and profile."""
    tx.execute(insert_if_new(_IMPORTS).values(values).on_conflict_do_nothing())
    same = (_OF.digest == values["digest"]) & (_OF.profile == values["profile"])
    return _ROWS.make(*tx.execute(select(*_ROWS.columns).where(same)).one())


def by_id(tx: Session | Connection, id: UUID) -> ImportView | None:
    return _ROWS.one_or_none(tx.execute(select(*_ROWS.columns).where(_OF.id == id)))


def newest(tx: Session | Connection, most: int, *, after: UUID | None) -> list[ImportView]:
    wanted = select(*_ROWS.columns).order_by(_OF.id.desc()).limit(most)
    return _ROWS.all(tx.execute(wanted if after is None else wanted.where(_OF.id < after)))


def next_waiting(tx: Session | Connection) -> tuple[ImportView, bytes, bytes] | None:
    """Returns the oldest file that was not read yet, with its content and seal."""
    return _with_content(tx, _OF.state == ImportState.WAITING)


def _with_content(
    tx: Session | Connection, which: ColumnElement[bool]
) -> tuple[ImportView, bytes, bytes] | None:
    wanted = select(*_ROWS.columns, _OF.content, _OF.seal).where(which)
    row = tx.execute(wanted.order_by(_OF.id).limit(1)).one_or_none()
    return None if row is None else (_ROWS.of_columns(row._mapping), bytes(row.content), bytes(row.seal))


def kept(tx: Session | Connection, id: UUID) -> tuple[ImportView, bytes, bytes] | None:
    """Returns a file with its content and seal."""
    return _with_content(tx, _OF.id == id)


def is_taken_otherwise(tx: Session, file: ImportView) -> bool:
    """Returns whether the same bytes were taken by another profile."""
    digest = select(_OF.digest).where(_OF.id == file.id).scalar_subquery()
    taken = select(_OF.id).where(_OF.digest == digest, _OF.id != file.id, _OF.state == ImportState.TAKEN)
    return tx.execute(taken.limit(1)).one_or_none() is not None


def locked_if_waiting(tx: Session, id: UUID) -> bool:
    """Returns whether no other worker has read the file, which is locked then. Files are stored one after the other:
    two may have the same new line.
    """
    tx.execute(_ONE_AT_A_TIME)
    wanted = select(_OF.id).where(_OF.id == id, _OF.state == ImportState.WAITING)
    return tx.execute(wanted.with_for_update()).one_or_none() is not None


def end(tx: Session, id: UUID, **values: Any) -> None:
    tx.execute(update(_IMPORTS).where(_OF.id == id).values(values))


def add_statements(tx: Session, statements: Sequence[StatementView]) -> None:
    if statements:
        tx.execute(
            insert(_STATEMENTS),
            [
                {name: value for name, value in asdict(each).items() if name != "has_gap"}
                for each in statements
            ],
        )


def statements_between(tx: Session, first: str, last: str) -> list[StatementView]:
    """Returns the statements with ids above the first, up to the last."""
    rows = select(*_STATEMENT_ROWS.columns).where(
        _STATEMENTS.c.id > UUID(first), _STATEMENTS.c.id <= UUID(last)
    )
    return [_STATEMENT_ROWS.make(*row, False) for row in tx.execute(rows)]


def statements_of(tx: Session | Connection, ids: Sequence[UUID]) -> dict[UUID, list[StatementView]]:
    found: dict[UUID, list[StatementView]] = {id: [] for id in ids}
    for row in tx.execute(_OF_IMPORTS, {"ids": list(ids)}).mappings():
        found[row["import_id"]].append(StatementView(**row))
    return found
