"""The verification of acts: each entry against its act, the end of the chain against the heads that are kept elsewhere.

Statements and hashes are those of `chain`; nothing else is shared with the worker that made the entries.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, Final

from sqlalchemy import RowMapping, text
from sqlalchemy.orm import Session

from kit.audit import approval_lists, approvals, heads
from kit.audit.acts import time_of
from kit.audit.chain import CHAIN, COLUMNS, EMPTY, DatedHead, hash_at, hash_of, hashes_at, head
from kit.audit.chaining import LATE
from kit.base.clock import Clock
from kit.db.database import Database, bound_statements

EXCHANGES_AT_ONCE: Final = 1000
MAX_PROBLEMS: Final = 100
STATEMENT_TIMEOUT_SECONDS: Final = 50
OVERDUE: Final = timedelta(minutes=5)
"""An act is in the chain, and an exchange on both sides, within seconds. Clocks of machines differ by less."""


@dataclass(frozen=True, slots=True)
class KnownExchange:
    """The last exchange with this service that another `service` keeps."""

    service: str
    number: int
    digest: bytes
    at: datetime


@dataclass(slots=True)
class Report:
    """The result of one page. If `more`, the next one begins after the entry `last`."""

    checked: int = 0
    last: int = 0
    more: bool = False
    unchained: int = 0
    problems: list[str] = field(default_factory=list)


_ENTRIES = text(f"""
SELECT number, act_id, hash, chained_at, {", ".join(f"acts.{name}" for name in COLUMNS)}
FROM (SELECT * FROM act_chain WHERE number > :after ORDER BY number LIMIT :limit) AS entry
LEFT JOIN acts ON acts.id = act_id ORDER BY number
""")  # noqa: S608  made of constants
_BEFORE = text("SELECT number, hash, chained_at FROM act_chain WHERE number = :number")
_UNCHAINED = text("""
SELECT id, at, act, object FROM acts
WHERE NOT EXISTS (SELECT FROM act_chain WHERE act_id = acts.id) ORDER BY id LIMIT :limit
""")
_COUNT_UNCHAINED = text(
    "SELECT count(*) FROM acts WHERE NOT EXISTS (SELECT FROM act_chain WHERE act_id = acts.id)"
)


def check_page(
    db: Database,
    clock: Clock,
    *,
    after: int,
    limit: int,
    known: Sequence[DatedHead] = (),
    exchanges: Sequence[KnownExchange] = (),
) -> Report:
    """Checks the next entries after number `after`, all read at one moment; with the last page also the end."""
    with db.transaction() as tx:
        tx.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        if not CHAIN.is_usable(tx):
            return Report(last=after)
        bound_statements(tx, seconds=STATEMENT_TIMEOUT_SECONDS)
        rows = tx.execute(_ENTRIES, {"after": after, "limit": limit}).mappings().all()
        report = Report(checked=len(rows), more=len(rows) == limit)
        report.last = rows[-1]["number"] if rows else after
        now = clock.now()
        report.problems += _of_entries(tx, rows, after)
        report.problems += _of_times(tx, rows, after, now)
        if not report.more:
            report.unchained = tx.scalar(_COUNT_UNCHAINED) or 0
            report.problems += _of_unchained(tx, now)
            report.problems += _of_heads(tx, known)
            report.problems += _of_own_exchanges(tx)
            report.problems += _of_known_exchanges(tx, exchanges, now)
            report.problems += _of_approvals(tx)
    del report.problems[MAX_PROBLEMS:]
    return report


def _of_entries(tx: Session, rows: Iterable[RowMapping], after: int) -> list[str]:
    problems: list[str] = []
    number, previous, chained_at = after, EMPTY, None
    if after:
        before = tx.execute(_BEFORE, {"number": after}).one_or_none()
        previous, chained_at = (bytes(before.hash), before.chained_at) if before else (b"", None)
    for row in rows:
        if row["number"] != number + 1:
            problems.append(f"entries {number + 1} to {row['number'] - 1} of the chain are missing")
        problems += _of_entry(row, previous, chained_at)
        # Goes on with the stored hash, so that one wrong entry is one problem.
        number, previous, chained_at = row["number"], bytes(row["hash"]), row["chained_at"]
    return problems


def _of_entry(row: RowMapping, previous: bytes, chained_before: datetime | None) -> list[str]:
    entry = f"entry {row['number']} of the chain"
    if row["id"] is None:
        return [f"act {row['act_id']}, {entry}, is missing"]
    act = _named(row)
    if bytes(row["hash"]) != hash_of(previous, row["number"], row["chained_at"], row):
        return [f"{act}, {entry}: the act or the entry was changed, or an entry before it is missing"]
    if chained_before is not None and row["at"] < chained_before - LATE:
        return [
            f"{act}, {entry}: it bears the time {_time(row['at'])}, but was added after {_time(chained_before)}"
        ]
    return []


def _of_times(tx: Session, rows: Sequence[RowMapping], after: int, now: datetime) -> list[str]:
    """Checks that acts bear the time of their id, none to come, and none before an exchange that they follow."""
    if not rows:
        return []
    exchanges = heads.times_of_exchanges(tx, after, rows[-1]["number"])
    exchanged_at = exchanges.get(max((each for each in exchanges if each <= after), default=-1))
    problems: list[str] = []
    for row in rows:
        exchanged_at = max(filter(None, (exchanged_at, exchanges.get(row["number"] - 1))), default=None)
        if row["id"] is None:
            continue
        act = f"{_named(row)}, entry {row['number']} of the chain"
        first, last = sorted((row["at"], row["chained_at"]))
        if row["at"] != time_of(row["id"]):
            problems.append(
                f"{act}: it bears the time {_time(row['at'])}, its id {_time(time_of(row['id']))}"
            )
        elif last > now + OVERDUE:
            problems.append(f"{act}: it bears the time {_time(last)}, which is to come")
        elif exchanged_at is not None and first < exchanged_at - OVERDUE:
            problems.append(
                f"{act}: it bears the time {_time(first)}, but was added after the exchange of {_time(exchanged_at)}"
            )
    return problems


def _of_unchained(tx: Session, now: datetime) -> list[str]:
    waiting = tx.execute(_UNCHAINED, {"limit": MAX_PROBLEMS}).mappings()
    return [
        f"{_named(row)} is of {_time(row['at'])} and not in the chain: no worker chains acts, or it was added by hand"
        for row in waiting
        if row["at"] < now - OVERDUE
    ]


def _of_heads(tx: Session, known: Iterable[DatedHead]) -> list[str]:
    problems = []
    end = head(tx)
    for each in known:
        found = hash_at(tx, each.count)
        if found is None:
            problems.append(
                f"the chain has {end.count if end else 0} entries, but a head of {_time(each.at)} that is kept"
                f" elsewhere has {each.count}: acts were removed at its end"
            )
        elif found != each.hash:
            problems.append(
                f"entry {each.count} of the chain has another hash than the head of {_time(each.at)} that is kept"
                " elsewhere: acts were rewritten"
            )
    return problems


def _of_own_exchanges(tx: Session) -> list[str]:
    """Checks the exchanges that this service keeps against each other and against its own chain."""
    problems: list[str] = []
    service, number, previous = "", 0, EMPTY
    for each, known_hash in _with_hashes(tx, heads.all_exchanges(tx)):
        if each.service != service:
            service, number, previous = each.service, 0, EMPTY
        named = f"exchange {each.number} of heads with {each.service}"
        if heads.begins_series(each.number):
            previous = EMPTY
        if not heads.follows(each.number, number):
            problems.append(f"exchanges {number + 1} to {each.number - 1} with {each.service} are missing")
        elif heads.digest_of(each, previous) != each.digest:
            problems.append(f"{named}, of {_time(each.at)}, was changed")
        elif known_hash != each.own.hash:
            problems.append(
                f"{named}, of {_time(each.at)}, knows another entry {each.own.count} than the chain has:"
                " acts were removed or rewritten"
            )
        elif _is_restart_without_act(tx, each):
            problems.append(f"{named}, of {_time(each.at)}, begins a new series, but no operator did that")
        number, previous = each.number, each.digest
    return problems


def _with_hashes(
    tx: Session, exchanges: Iterable[heads.Exchange]
) -> Iterator[tuple[heads.Exchange, bytes | None]]:
    """Returns each exchange with the hash of the entry that it knows of this chain, as it is now."""
    exchanges = iter(exchanges)
    while some := list(islice(exchanges, EXCHANGES_AT_ONCE)):
        hashes = hashes_at(tx, {each.own.count for each in some})
        yield from ((each, hashes.get(each.own.count)) for each in some)


def _is_restart_without_act(tx: Session, exchange: heads.Exchange) -> bool:
    """Returns whether a series begins without an act. Only the keeper has these acts."""
    is_restart = exchange.number > 1 and heads.begins_series(exchange.number)
    return is_restart and exchange.service != heads.KEEPER and not heads.is_restarted(tx, exchange)


def _of_known_exchanges(tx: Session, exchanges: Iterable[KnownExchange], now: datetime) -> list[str]:
    problems = []
    for each in exchanges:
        found = heads.digest_at(tx, each.service, each.number)
        if found == each.digest:
            continue
        named = f"exchange {each.number} of heads, which {each.service} keeps since {_time(each.at)},"
        if found is not None:
            problems.append(f"{named} differs from this service's: one of the two was changed")
        elif each.at < now - OVERDUE or not _is_on_its_way(tx, each):
            problems.append(
                f"{named} is missing here: exchanges were removed, and acts may be missing with them"
            )
    return problems


def _is_on_its_way(tx: Session, exchange: KnownExchange) -> bool:
    """Returns whether the keeper has made the exchange and this service has not stored the answer yet."""
    last = heads.last_exchange(tx, exchange.service)
    return exchange.service == heads.KEEPER and heads.follows(exchange.number, last.number if last else 0)


def _of_approvals(tx: Session) -> list[str]:
    """Checks that each request for a second person has the act of its call."""
    problems: list[str] = []
    for portion in approval_lists.everything(tx):
        requested = approvals.requested_by_calls(tx, portion)
        problems += [
            f"request {each.id} ({each.act} {each.object}) has no act of its call: it was added by hand"
            for each in portion
            if each.id not in requested
        ]
    return problems


def _named(row: RowMapping | dict[str, Any]) -> str:
    return f"act {row['id']} ({row['act']} {row['object']})"


def _time(at: datetime) -> str:
    return at.isoformat(sep=" ", timespec="seconds")
