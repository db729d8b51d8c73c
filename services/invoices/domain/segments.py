"""The place of a page among parts of a list whose numbers of rows are known."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cover:
    """The parts that a page has rows of, by their index, in order; `skip` rows of the first one stand before it."""

    parts: Sequence[int]
    skip: int


def cover(counts: Sequence[int], offset: int, limit: int) -> Cover:
    """Returns the parts of a list, each with so many rows, that its rows from `offset` on stand in, `limit` at most."""
    parts = list(_parts(counts, offset, offset + limit))
    return Cover(parts, offset - sum(counts[: parts[0]]) if parts else 0)


def _parts(counts: Sequence[int], first: int, end: int) -> Iterator[int]:
    before = 0
    for index, count in enumerate(counts):
        if count and before < end and before + count > first:
            yield index
        before += count
