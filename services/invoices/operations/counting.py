"""The worker that counts each merchant's invoices once, for the totals of lists."""

from datetime import timedelta
from typing import Final

from services.invoices.store import segments
from services.invoices.wiring import Deps

PAGE: Final = 5000
LATE: Final = timedelta(minutes=5)
"""An invoice is visible long before this after the time in it: creating one ends after seconds."""


def count_invoices(deps: Deps) -> bool:
    """Counts a page of invoices, and of those that have ended since; returns true when there may be more."""
    with deps.db.transaction() as tx:
        return segments.count_next(tx, until=deps.clock.now() - LATE, page=PAGE)
