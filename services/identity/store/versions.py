"""The version of a row, and since when this process knows it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from sqlalchemy import literal_column, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from kit.base.clock import monotonic_seconds

R = TypeVar("R")

REMEMBERED_MOST: Final = 10_000

Version = tuple[str, str, str]
"""The table, the row, and the transaction that wrote the row as it is: each change of it has another one."""


@dataclass(frozen=True, kw_only=True)
class Versioned(Generic[R]):
    """An answer, and the version of the row that it is about."""

    answer: R
    version: Version


def version_of(tx: Session, key: InstrumentedAttribute[Any], value: object) -> Version:
    """Returns the version of the row with that value in its key: the one that `tx` has locked or written."""
    table = key.class_.__tablename__
    written_by: str = tx.execute(
        select(literal_column(f"{table}.xmin::text")).where(key == value)
    ).scalar_one()
    return table, str(value), written_by


class KnownVersions:
    """The versions that this process has seen committed. The oldest knowledge of all is forgotten together."""

    def __init__(self, *, now_seconds: Callable[[], float] = monotonic_seconds) -> None:
        self._now_seconds = now_seconds
        self._since_seconds: dict[Version, float] = {}

    def age_seconds(self, version: Version) -> float:
        """Returns for how long this version has been known; 0 for one that is new. Other transactions have been able to
        read it for at least as long.
        """
        now_seconds = self._now_seconds()
        if version not in self._since_seconds and len(self._since_seconds) >= REMEMBERED_MOST:
            self._since_seconds.clear()
        return now_seconds - self._since_seconds.setdefault(version, now_seconds)
