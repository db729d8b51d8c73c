"""The chain of acts: each entry has a number and a seal over its act, its number, its time and the entry before.

Only a process of the service can make an entry. So a changed, added or missing act contradicts the chain; one that is
missing at its end contradicts the heads that are kept elsewhere (kit.audit.heads).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, RowMapping, text
from sqlalchemy.orm import Session

from kit.audit.acts import COLUMNS
from kit.base.seals import Seals, canonical

EMPTY: Final = bytes(32)
"""The hash before the first entry, and that of a chain without entries."""
_SEALED: Final = "entry of the chain of acts"


@dataclass(frozen=True, slots=True)
class Head:
    """The end of a chain: the number of its entries, the last hash, and the time of the last entry. Of a head that is
    kept elsewhere the time is that of its keeping.
    """

    count: int
    hash: bytes
    at: datetime


def hash_of(
    seals: Seals, previous: bytes, number: int, chained_at: datetime, act: Mapping[str, Any] | RowMapping
) -> bytes:
    """Returns the hash of a new entry."""
    return seals.seal(_SEALED, _sealed_part(previous, number, chained_at, act))


def is_right_entry(seals: Seals, previous: bytes, row: RowMapping) -> bool:
    """Returns whether a process made the entry, given with its act in one row, after the entry with the hash
    `previous`.
    """
    sealed = _sealed_part(previous, row["number"], row["chained_at"], row)
    return seals.is_right(_SEALED, sealed, bytes(row["hash"]))


def _sealed_part(
    previous: bytes, number: int, chained_at: datetime, act: Mapping[str, Any] | RowMapping
) -> bytes:
    return canonical([previous, number, chained_at, *(act[name] for name in COLUMNS)])


_HEAD = text("SELECT number, hash, chained_at FROM act_chain ORDER BY number DESC LIMIT 1")


def head(tx: Session | Connection) -> Head | None:
    """Returns the end of this service's chain; None as long as it has no entry."""
    row = tx.execute(_HEAD).one_or_none()
    return None if row is None else Head(row.number, bytes(row.hash), row.chained_at)


_HASH = text("SELECT hash FROM act_chain WHERE number = :number")


def hash_at(tx: Session | Connection, number: int) -> bytes | None:
    """Returns the hash of the entry with this number, `EMPTY` for 0; None when there is no such entry."""
    if number == 0:
        return EMPTY
    found = tx.scalar(_HASH, {"number": number})
    return None if found is None else bytes(found)
