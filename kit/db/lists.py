"""Conditions of the lists that operators read page by page: a span of time, and the place where a page begins."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, tuple_

Column = Any
"""An attribute of a model; SQLAlchemy has no common type for those of different values."""


def in_span(at: Column, since: datetime | None, until: datetime | None) -> Iterator[ColumnElement[bool]]:
    """Yields the conditions that a time is `since` or later, and before `until`; a null one is no condition."""
    if since is not None:
        yield at >= since
    if until is not None:
        yield at < until


def stands_after(
    keys: Sequence[Column], place: Sequence[Any], *, oldest_first: bool = False
) -> ColumnElement[bool]:
    """Returns the condition that a row stands after `place` in the order of these keys, as time and id: newest first by
    default.

    The place is a value, not a subquery: only so PostgreSQL begins to read the index there.
    """
    row, last = tuple_(*keys), tuple_(*place)
    return row > last if oldest_first else row < last
