"""Reading that one bad row does not stop: what can't be read is named, and everything else is read."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeVar

from sqlalchemy import exc
from sqlalchemy.orm import Session

from kit.db.database import first_line, outage_of

T = TypeVar("T")
STATEMENT_TIMEOUT: Final = "57014"


def each_by_itself(
    tx: Session,
    read: Callable[[str, str], Iterable[T]],
    *,
    first: str,
    keys: Sequence[str],
    last: str,
    unreadable: list[str],
) -> list[T]:
    """Returns what `read` returns for the keys above `first` up to `last`, of which `keys` are those that there are.

    When it fails, each half is read by itself, down to single keys. A key that can't be read is added to `unreadable`,
    with the error. Raises what the database raises when it is away.
    """
    try:
        with tx.begin_nested():
            return list(read(first, last))
    except Exception as error:  # whatever a row may hold: the others must still be read
        if isinstance(error, exc.DBAPIError):
            outage = outage_of(error)
            if outage is not None and getattr(error.orig, "pgcode", None) != STATEMENT_TIMEOUT:
                raise
        if len(keys) <= 1:
            unreadable.append(
                f"{keys[0] if keys else last}: {type(error).__name__}: {first_line(error)[:200]}"
            )
            return []
    half = len(keys) // 2
    middle = keys[half - 1]
    return [
        *each_by_itself(tx, read, first=first, keys=keys[:half], last=middle, unreadable=unreadable),
        *each_by_itself(tx, read, first=middle, keys=keys[half:], last=last, unreadable=unreadable),
    ]
