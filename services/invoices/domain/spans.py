"""Times from "I have paid" to the confirmation, counted in spans: the counts of many days add up, and give a median."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

FINE_SECONDS: Final = 10
LONGEST_SECONDS: Final = 10_000_000
"""Longer times count as this one: it is four months."""


def _bounds() -> tuple[int, ...]:
    """Returns each second up to `FINE_SECONDS`, then steps of a tenth: the middle of a span is right to a twentieth."""
    bounds = list(range(1, FINE_SECONDS + 1))
    while bounds[-1] < LONGEST_SECONDS:
        bounds.append(bounds[-1] * 11 // 10)
    return tuple(bounds)


BOUNDS: Final = _bounds()
"""Span n has the times of BOUNDS[n - 1] seconds or more, and below BOUNDS[n]. It must not change: the rows of
daily_times depend on it.
"""
_MIDDLES: Final = (0, *((low + high) // 2 for low, high in pairwise(BOUNDS)), BOUNDS[-1])


def percentile_seconds(deals_by_span: Mapping[int, int], percent: int) -> int | None:
    """Returns the time that `percent` of the deals did not exceed, in seconds; None without deals."""
    rank = -(-sum(deals_by_span.values()) * percent // 100)
    for span in sorted(deals_by_span):
        rank -= deals_by_span[span]
        if rank <= 0:
            return _MIDDLES[span]
    return None
