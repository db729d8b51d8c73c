"""Exchanges of heads: each service gives accounts the head of its chain and keeps that of accounts.

Both sides keep the same exchange, so that a chain which is cut short or computed anew in one database contradicts the
other one. Exchanges between two services are numbered without a gap, and each has a digest over itself and the digest
before: equal last digests mean equal exchanges.

A contradiction stays until an operator begins a new series of exchanges (`restart`), because rows are only added.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.orm import Session

from kit.audit import acts
from kit.audit.chain import EMPTY, Head, digest, hash_at, head
from kit.base.clock import Clock
from kit.db.database import Database

KEEPER: Final = "accounts"
"""The service that exchanges heads with all others."""
KEPT_EVERY: Final = timedelta(seconds=4)
"""Exchanges that a service asks for sooner are the one before: a stolen certificate must not fill the keeper's disk."""
KEPT_AT_LEAST_EVERY: Final = timedelta(minutes=5)
"""Also when no chain has grown, so that an act which is added later contradicts the time of an exchange."""
MOST_GROWTH: Final = 1_000_000
MOST_GROWTH_A_SECOND: Final = 10_000
"""A chain that has grown by more since the last exchange is none of ours."""
SERIES: Final = 10**9
"""A series of exchanges begins with 1, or with a multiple of this plus 1."""
RESTART: Final = "heads.restart"
"""The act of an operator who begins a new series."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """The heads of two chains at one moment. `service` is the other service, `theirs` is its head."""

    service: str
    number: int
    at: datetime
    theirs: Head
    own: Head
    digest: bytes = b""


class HeadRefused(Exception):
    """The offered head contradicts the exchanges that are kept: acts were removed or rewritten somewhere."""


_COLUMNS: Final = "service, number, at, count, hash, own_count, own_hash, digest"
_LAST = text(
    f"SELECT {_COLUMNS} FROM act_heads WHERE service = :service ORDER BY number DESC LIMIT 1"  # noqa: S608
)
_EACH_LAST = text(
    f"SELECT DISTINCT ON (service) {_COLUMNS} FROM act_heads ORDER BY service, number DESC"  # noqa: S608
)
_ALL = text(f"SELECT {_COLUMNS} FROM act_heads ORDER BY service, number")  # noqa: S608
_AT = text("SELECT digest FROM act_heads WHERE service = :service AND number = :number")
_TIME_BEFORE = text(
    "SELECT own_count, at FROM act_heads WHERE own_count <= :first ORDER BY own_count DESC, at DESC LIMIT 1"
)
_TIMES_BETWEEN = text(
    "SELECT own_count, max(at) AS at FROM act_heads WHERE own_count > :first AND own_count < :last GROUP BY own_count"
)
_ADD = text("""
INSERT INTO act_heads (service, number, at, count, hash, own_count, own_hash, digest)
VALUES (:service, :number, :at, :count, :hash, :own_count, :own_hash, :digest) ON CONFLICT DO NOTHING
""")
_IS_RESTARTED = text("""
SELECT EXISTS (
  SELECT FROM acts WHERE act = :act AND object = :object AND refused = ''
    AND changes @> jsonb_build_array(jsonb_build_array('exchange', CAST(:number AS text)))
)
""")
_LOCK = text("SELECT pg_advisory_xact_lock(hashtextextended('act_heads ' || :service, 0))")


def last_exchange(tx: Session, service: str) -> Exchange | None:
    row = tx.execute(_LAST, {"service": service}).one_or_none()
    return None if row is None else _exchange(row)


def last_exchanges(tx: Session) -> list[Exchange]:
    """Returns the last exchange with each other service."""
    return [_exchange(row) for row in tx.execute(_EACH_LAST)]


def all_exchanges(tx: Session) -> Iterator[Exchange]:
    """Returns all exchanges, by service and number; reads them in portions."""
    return map(_exchange, tx.execute(_ALL.execution_options(yield_per=1000)))


def times_of_exchanges(tx: Session, first: int, last: int) -> dict[int, datetime]:
    """Returns the times of the newest exchanges by the number of entries of this chain: of each number between the
    two, and of the greatest one up to `first`. An entry that follows is not older.
    """
    before = tx.execute(_TIME_BEFORE, {"first": first}).all()
    between = tx.execute(_TIMES_BETWEEN, {"first": first, "last": last}).all()
    return {row.own_count: row.at for row in (*before, *between)}


def digest_at(tx: Session, service: str, number: int) -> bytes | None:
    found = tx.scalar(_AT, {"service": service, "number": number})
    return None if found is None else bytes(found)


def own_head(tx: Session) -> Head:
    """Returns the head of this service's chain."""
    found = head(tx)
    return Head(0, EMPTY) if found is None else Head(found.count, found.hash)


def begins_series(number: int) -> bool:
    return number % SERIES == 1


def follows(number: int, before: int) -> bool:
    """Returns whether the exchange is the next one of its series, or begins a later series."""
    return number == before + 1 or (begins_series(number) and number > before)


def keep(tx: Session, exchange: Exchange, *, last: Exchange | None) -> None:
    """Adds the exchange. The digest of the first one of a series is over itself alone: both sides differ before it."""
    previous = EMPTY if last is None or begins_series(exchange.number) else last.digest
    tx.execute(
        _ADD,
        {
            "service": exchange.service,
            "number": exchange.number,
            "at": exchange.at,
            "count": exchange.theirs.count,
            "hash": exchange.theirs.hash,
            "own_count": exchange.own.count,
            "own_hash": exchange.own.hash,
            "digest": digest_of(exchange, previous),
        },
    )


def digest_of(exchange: Exchange, previous: bytes) -> bytes:
    """Returns the digest, the same on both sides."""
    is_keeper = exchange.service != KEEPER
    of_keeper, of_other = (exchange.own, exchange.theirs) if is_keeper else (exchange.theirs, exchange.own)
    at = exchange.at.astimezone(UTC).isoformat(timespec="microseconds")
    ends = [of_other.count, of_other.hash.hex(), of_keeper.count, of_keeper.hash.hex()]
    return digest(previous, [exchange.number, at, *ends])


def answer(db: Database, clock: Clock, *, service: str, number: int, theirs: Head) -> Exchange:
    """Returns the exchange `number` with `service`, which is made if there is none: the keeper's side.

    When neither chain has grown since the last exchange, or that was a moment ago, that one is returned. An exchange
    that there is already is returned as it is, because its answer may have been lost. Raises HeadRefused.
    """
    with db.transaction() as tx:
        tx.execute(_LOCK, {"service": service})
        last = last_exchange(tx, service)
        if last is not None and number <= last.number:
            return last
        kept = 0 if last is None else last.number
        if number != kept + 1:
            raise HeadRefused(f"{service} has {number - 1} exchanges, {KEEPER} has {kept}")
        now, own = clock.now(), own_head(tx)
        _require_continued(service, theirs, last, now)
        if last is not None:
            is_equal = (theirs, own) == (last.theirs, last.own)
            # A clock that was ahead made the last one: the next one is made, and not before it.
            if timedelta(0) <= now - last.at < (KEPT_AT_LEAST_EVERY if is_equal else KEPT_EVERY):
                return last
            now = max(now, last.at)
        made = Exchange(service, number, now, theirs, own)
        keep(tx, made, last=last)
    return made


def _require_continued(service: str, theirs: Head, last: Exchange | None, now: datetime) -> None:
    """Raises HeadRefused unless the head may be that of the chain some time later."""
    before = Head(0, EMPTY) if last is None else last.theirs
    seconds = 0.0 if last is None else (now - last.at).total_seconds()
    if theirs.count < before.count:
        raise HeadRefused(f"the chain of {service} has {theirs.count} entries; it had {before.count}")
    if theirs.count == before.count and theirs.hash != before.hash:
        raise HeadRefused(f"entry {theirs.count} of {service} has another hash than before")
    if theirs.count - before.count > max(MOST_GROWTH, MOST_GROWTH_A_SECOND * seconds):
        raise HeadRefused(
            f"the chain of {service} has {theirs.count} entries; it had {before.count} just before"
        )


def restart(db: Database, clock: Clock, *, service: str, theirs: Head, note: str) -> Exchange:
    """Begins a new series of exchanges with `service`, whose head is `theirs`, and records the act of the operator: the
    keeper's side. The service keeps the exchange when it asks for its next one. Earlier exchanges stay.
    """
    with db.transaction() as tx:
        tx.execute(_LOCK, {"service": service})
        last = last_exchange(tx, service)
        number = 1 if last is None else ((last.number - 1) // SERIES + 1) * SERIES + 1
        made = Exchange(service, number, clock.now(), theirs, own_head(tx))
        keep(tx, made, last=last)
        before = {} if last is None else {"exchange": last.number, "entries": last.theirs.count}
        after = {"exchange": number, "entries": theirs.count}
        acts.record(tx, RESTART, f"service:{service}", before=before, after=after, note=note)
    return made


def is_restarted(tx: Session, exchange: Exchange) -> bool:
    """Returns whether an operator began the series of this exchange: the keeper's side."""
    about = {"act": RESTART, "object": f"service:{exchange.service}"}
    return bool(tx.scalar(_IS_RESTARTED, about | {"number": str(exchange.number)}))


def take(db: Database, given: Exchange) -> None:
    """Keeps the exchange that the keeper returned: the other side. Raises HeadRefused when it contradicts this side."""
    with db.transaction() as tx:
        last = last_exchange(tx, given.service)
        kept = 0 if last is None else last.number
        if given.number == kept and last is not None:
            if (given.theirs, given.own) != (last.theirs, last.own):
                raise HeadRefused(f"{given.service} keeps another exchange {kept} than this service")
            return
        if not follows(given.number, kept):
            raise HeadRefused(f"{given.service} has {given.number} exchanges, this service has {kept}")
        if hash_at(tx, given.own.count) != given.own.hash:
            raise HeadRefused(f"{given.service} has seen another entry {given.own.count} than this chain has")
        keep(tx, given, last=last)


def _exchange(row: Sequence[Any]) -> Exchange:
    service, number, at, count, hash, own_count, own_hash, digest = row
    return Exchange(
        service, number, at, Head(count, bytes(hash)), Head(own_count, bytes(own_hash)), bytes(digest)
    )
