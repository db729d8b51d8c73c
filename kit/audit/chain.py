"""The chain of acts: each entry has a number and a hash of its act, its number, its time and the hash before.

A change of an act or of an entry contradicts its hash. Recomputed hashes from there on contradict the heads that are
kept elsewhere (kit.audit.heads).
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Connection, RowMapping, text
from sqlalchemy.orm import Session

from kit.db.schema import NewTable

CHAIN: Final = NewTable("act_chain")
EMPTY: Final = bytes(32)
"""The hash before the first entry, and that of a chain without entries."""

COLUMNS: Final = (
    "id",
    "at",
    "actor_kind",
    "actor_name",
    "person_id",
    "session_id",
    "surface",
    "on_behalf_of",
    "act",
    "object",
    "merchant_id",
    "changes",
    "note",
    "request_id",
    "refused",
)
"""The columns of an act, all of which are hashed."""


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain: the number of its entries and the last hash."""

    count: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class DatedHead(Head):
    """`at` is the time of the last entry; of a head that is kept elsewhere, that of its keeping."""

    at: datetime


def hash_of(previous: bytes, number: int, chained_at: datetime, act: Mapping[str, Any] | RowMapping) -> bytes:
    """Returns the hash of an entry: SHA-256 of the hash before and a JSON array of number, time and columns."""
    return digest(previous, [number, chained_at, *(act[name] for name in COLUMNS)])


def digest(previous: bytes, values: Sequence[object]) -> bytes:
    """Returns the SHA-256 of these bytes and a JSON array of the values."""
    canonical = [_canonical(each) for each in values]
    written = json.dumps(canonical, separators=(",", ":"), sort_keys=True)
    return hashlib.sha256(previous + written.encode()).digest()


def _canonical(value: object) -> object:
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat(timespec="microseconds")
        case UUID():
            return str(value)
    return value


_HEAD = text("SELECT number, hash, chained_at FROM act_chain ORDER BY number DESC LIMIT 1")


def head(tx: Session | Connection) -> DatedHead | None:
    """Returns the end of this service's chain; None as long as it has no entry."""
    row = tx.execute(_HEAD).one_or_none()
    return None if row is None else DatedHead(row.number, bytes(row.hash), row.chained_at)


_HASH = text("SELECT hash FROM act_chain WHERE number = :number")


_HASHES = text("SELECT number, hash FROM act_chain WHERE number = ANY(:numbers)")


def hashes_at(tx: Session | Connection, numbers: Collection[int]) -> dict[int, bytes]:
    """Returns the hashes of the entries with these numbers, `EMPTY` for 0; those that there are."""
    found = tx.execute(_HASHES, {"numbers": list(numbers)})
    return {0: EMPTY} | {row.number: bytes(row.hash) for row in found}


def hash_at(tx: Session | Connection, number: int) -> bytes | None:
    """Returns the hash of the entry with this number, `EMPTY` for 0; None when there is no such entry."""
    if number == 0:
        return EMPTY
    found = tx.scalar(_HASH, {"number": number})
    return None if found is None else bytes(found)
