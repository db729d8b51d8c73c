"""Exchanges of heads: each service gives accounts the head of its chain and keeps that of accounts.

Both sides keep the same exchange, so that a chain which is cut short or computed anew in one database contradicts the
other one. Exchanges between two services are numbered without a gap, and each has a digest over itself and the digest
before: equal last digests mean equal exchanges.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import text
from sqlalchemy.orm import Session

from kit.audit.chain import EMPTY, Head, digest, hash_at, head
from kit.base.clock import Clock
from kit.db.database import Database

KEEPER: Final = "accounts"
"""The service that exchanges heads with all others."""


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
_ADD = text("""
INSERT INTO act_heads (service, number, at, count, hash, own_count, own_hash, digest)
VALUES (:service, :number, :at, :count, :hash, :own_count, :own_hash, :digest) ON CONFLICT DO NOTHING
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


def digest_at(tx: Session, service: str, number: int) -> bytes | None:
    found = tx.scalar(_AT, {"service": service, "number": number})
    return None if found is None else bytes(found)


def own_head(tx: Session) -> Head:
    """Returns the head of this service's chain."""
    found = head(tx)
    return Head(0, EMPTY) if found is None else Head(found.count, found.hash)


def keep(tx: Session, exchange: Exchange, *, previous: bytes) -> None:
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

    When neither chain has grown since the last exchange, that one is returned. An exchange that there is already is
    returned as it is, because its answer may have been lost. Raises HeadRefused.
    """
    with db.transaction() as tx:
        tx.execute(_LOCK, {"service": service})
        last = last_exchange(tx, service)
        if last is not None and number <= last.number:
            return last
        kept = 0 if last is None else last.number
        if number != kept + 1:
            raise HeadRefused(f"{service} has {number - 1} exchanges, {KEEPER} has {kept}")
        own = own_head(tx)
        if last is not None:
            if theirs.count < last.theirs.count:
                raise HeadRefused(
                    f"the chain of {service} has {theirs.count} entries; it had {last.theirs.count}"
                )
            if theirs.count == last.theirs.count and theirs.hash != last.theirs.hash:
                raise HeadRefused(f"entry {theirs.count} of {service} has another hash than before")
            if (theirs, own) == (last.theirs, last.own):
                return last
        made = Exchange(service, number, clock.now(), theirs, own)
        keep(tx, made, previous=EMPTY if last is None else last.digest)
    return made


def take(db: Database, given: Exchange) -> None:
    """Keeps the exchange that the keeper returned: the other side. Raises HeadRefused when it contradicts this side."""
    with db.transaction() as tx:
        last = last_exchange(tx, given.service)
        kept = 0 if last is None else last.number
        if given.number == kept and last is not None:
            if (given.theirs, given.own) != (last.theirs, last.own):
                raise HeadRefused(f"{given.service} keeps another exchange {kept} than this service")
            return
        if given.number != kept + 1:
            raise HeadRefused(f"{given.service} has {given.number} exchanges, this service has {kept}")
        if hash_at(tx, given.own.count) != given.own.hash:
            raise HeadRefused(f"{given.service} has seen another entry {given.own.count} than this chain has")
        keep(tx, given, previous=EMPTY if last is None else last.digest)


def _exchange(row: Sequence[Any]) -> Exchange:
    service, number, at, count, hash, own_count, own_hash, digest = row
    return Exchange(
        service, number, at, Head(count, bytes(hash)), Head(own_count, bytes(own_hash)), bytes(digest)
    )
