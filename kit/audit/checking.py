"""The verification of acts: each act against its seal, each entry of the chain against its act and the entry before,
and the end of the chain against the heads that other services keep.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

from sqlalchemy import RowMapping, text
from sqlalchemy.orm import Session

from kit.audit import heads
from kit.audit.acts import COLUMNS, is_sealed
from kit.audit.chain import EMPTY, Head, hash_at, head, is_right_entry
from kit.base.clock import Clock
from kit.base.seals import Seals
from kit.db.books import PARTS_OF_PAGE
from kit.db.database import Database, bound_statements, seals_of
from kit.db.reading import each_by_itself

MAX_PROBLEMS: Final = 100
FORGED_MOST: Final = 10
"""Heads added by hand that are named: the role may add any number."""
UNCHAINED_MOST: Final = 1000
"""More wait only while no worker chains acts, which is a problem itself."""
STATEMENT_TIMEOUT_SECONDS: Final = 50
OVERDUE: Final = timedelta(minutes=5)
"""An act is in the chain within seconds. Clocks of machines differ by less."""


@dataclass(slots=True)
class Report:
    """The result of one page. If `more`, the next one begins after the entry `last`.

    unreadable  what could not be read, with the error; everything else was
    """

    checked: int = 0
    last: int = 0
    more: bool = False
    unchained: int = 0
    problems: list[str] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)


_NUMBERS = text("SELECT number FROM act_chain WHERE number > :after ORDER BY number LIMIT :limit")
_ENTRIES = text(f"""
SELECT number, act_id, hash, chained_at, {", ".join(f"acts.{name}" for name in (*COLUMNS, "seal"))}
FROM act_chain LEFT JOIN acts ON acts.id = act_id
WHERE number > CAST(:first AS bigint) AND number <= CAST(:last AS bigint) ORDER BY number
""")  # noqa: S608  made of constants
_BEFORE = text("SELECT hash FROM act_chain WHERE number = :number")
_UNCHAINED_IDS = text("""
SELECT id FROM acts WHERE NOT EXISTS (SELECT FROM act_chain WHERE act_id = acts.id) ORDER BY id LIMIT :limit
""")
_UNCHAINED = text(f"""
SELECT {", ".join(COLUMNS)}, seal FROM acts
WHERE NOT EXISTS (SELECT FROM act_chain WHERE act_id = acts.id)
  AND id > CAST(:first AS uuid) AND id <= CAST(:last AS uuid) ORDER BY id
""")  # noqa: S608  made of constants
_AT = text("SELECT acts.at FROM act_chain JOIN acts ON acts.id = act_id WHERE number = :number")
_COUNT_UNCHAINED = text(
    "SELECT count(*) FROM acts WHERE NOT EXISTS (SELECT FROM act_chain WHERE act_id = acts.id)"
)


def check_page(db: Database, clock: Clock, *, after: int, limit: int, known: Sequence[Head] = ()) -> Report:
    """Checks the next entries after number `after`, all read at one moment; with the last page also the end of the
    chain against the `known` heads. They are fewer than `limit` when more have too many problems for one answer.
    """
    with db.transaction() as tx:
        tx.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        bound_statements(tx, seconds=STATEMENT_TIMEOUT_SECONDS)
        numbers = tx.scalars(_NUMBERS, {"after": after, "limit": limit}).all()
        report = Report(checked=len(numbers), more=len(numbers) == limit)
        report.last = numbers[-1] if numbers else after
        unreadable: list[str] = []
        rows = each_by_itself(
            tx,
            partial(_entries, tx),
            first=str(after),
            keys=[str(each) for each in numbers],
            last=str(report.last),
            unreadable=unreadable,
        )
        report.unreadable += [f"entry {each}" for each in unreadable]
        of_entries = list(_of_entries(tx, rows, after, has_gaps=bool(unreadable)))
        if max(len(of_entries), len(unreadable)) > MAX_PROBLEMS and limit > 1:
            return check_page(db, clock, after=after, limit=limit // PARTS_OF_PAGE or 1, known=known)
        if not report.more:  # what ends the chain comes first, what the role may add in masses comes last
            report.unchained = tx.scalar(_COUNT_UNCHAINED) or 0
            report.problems += _of_heads(tx, known)
            report.problems += _of_newer(tx, known, clock.now())
        report.problems += of_entries
        if not report.more:
            report.problems += [
                f"the head of {each} that is kept here was added by hand"
                for each in heads.forged(tx)[:FORGED_MOST]
            ]
            report.problems += _of_unchained(tx, clock.now(), report.unreadable)
    if (more := len(report.problems) - MAX_PROBLEMS) > 0:
        report.problems[MAX_PROBLEMS:] = [f"{more} more problems of acts are left out here"]
    return report


def _entries(tx: Session, first: str, last: str) -> Iterator[RowMapping]:
    yield from tx.execute(_ENTRIES, {"first": first, "last": last}).mappings()


def _of_entries(tx: Session, rows: Iterable[RowMapping], after: int, *, has_gaps: bool) -> Iterator[str]:
    seals = seals_of(tx)
    number, previous = after, EMPTY
    if after:
        previous = bytes(tx.scalar(_BEFORE, {"number": after}) or b"")
    for row in rows:
        if row["number"] != number + 1:
            if not has_gaps:
                yield f"entries {number + 1} to {row['number'] - 1} of the chain are missing"
            previous = bytes(tx.scalar(_BEFORE, {"number": row["number"] - 1}) or b"")
        yield from _of_entry(seals, row, previous)
        # Goes on with the stored hash, so that one wrong entry is one problem.
        number, previous = row["number"], bytes(row["hash"])


def _of_entry(seals: Seals, row: RowMapping, previous: bytes) -> Iterator[str]:
    entry = f"entry {row['number']} of the chain"
    if row["id"] is None:
        yield f"act {row['act_id']}, {entry}, is missing"
    elif not is_sealed(seals, row):
        yield f"{_named(row)}, {entry}: no process of the service wrote it as it is"
    elif not is_right_entry(seals, previous, row):
        yield f"{_named(row)}, {entry}: the entry was changed, or an entry before it is missing"


def _of_unchained(tx: Session, now: datetime, unreadable: list[str]) -> Iterator[str]:
    ids = [str(each) for each in tx.scalars(_UNCHAINED_IDS, {"limit": UNCHAINED_MOST})]
    if not ids:
        return
    failed: list[str] = []
    if ids[0] == (first := str(UUID(int=0))):  # on no page, and no process makes it
        yield f"act {first} is not in the chain: no process of the service wrote it as it is"
    for row in each_by_itself(
        tx, partial(_waiting, tx), first=first, keys=ids, last=ids[-1], unreadable=failed
    ):
        if not is_sealed(seals_of(tx), row):
            yield f"{_named(row)} is not in the chain: no process of the service wrote it as it is"
        elif row["at"] < now - OVERDUE:
            yield f"{_named(row)} is of {_time(row['at'])} and not in the chain: no worker chains acts"
    unreadable += [f"act {each}" for each in failed]


def _waiting(tx: Session, first: str, last: str) -> Iterator[RowMapping]:
    yield from tx.execute(_UNCHAINED, {"first": first, "last": last}).mappings()


def _of_heads(tx: Session, known: Iterable[Head]) -> Iterator[str]:
    end = head(tx)
    for each in known:
        found = hash_at(tx, each.count)
        kept = f"a head of {_time(each.at)} that is kept elsewhere"
        if found is None:
            count = end.count if end else 0
            yield f"the chain has {count} entries, but {kept} has {each.count}: acts were removed at its end"
        elif found != each.hash:
            yield f"entry {each.count} of the chain has another hash than {kept}: acts were rewritten"


def _of_newer(tx: Session, known: Sequence[Head], now: datetime) -> Iterator[str]:
    """Yields that no newer head is kept, though the chain has grown long ago: its end could be cut unnoticed."""
    if not known:
        return
    newest = max(known, key=lambda each: each.count)
    grown = tx.scalar(_AT, {"number": newest.count + 1})
    if grown is not None and grown < now - OVERDUE:
        kept = f"the newest head that is kept elsewhere is of {_time(newest.at)}"
        yield f"the chain has grown at {_time(grown)}, but {kept}"


def _named(row: RowMapping | dict[str, Any]) -> str:
    return f"act {row['id']} ({row['act']} {row['object']})"


def _time(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="seconds")
