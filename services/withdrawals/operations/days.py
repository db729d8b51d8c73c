"""The worker's part of statements: it keeps the balance of each account at the end of each day."""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Final

from services.withdrawals.store import daily
from services.withdrawals.wiring import Deps

LATE: Final = timedelta(minutes=5)
"""A transfer is visible long before this after the time in it: the database ends slow transactions after seconds."""
ACCOUNTS: Final = 100
DAYS: Final = 7
"""The accounts and the days of one statement."""


@dataclass
class Pass:
    """The place of a process in its pass over all accounts. `done` is the time up to which all days are closed."""

    account: int = 0
    added: bool = False
    done: datetime | None = None


def close_days(deps: Deps, at: Pass) -> bool:
    """Adds the days that are over to the next accounts; returns true when there may be more."""
    until = datetime.combine((deps.clock.now() - LATE).astimezone(UTC).date(), time(), UTC)
    if at.done == until:
        return False
    with deps.db.transaction() as tx:
        closed = daily.close_next(tx, after=at.account, until=until, page=ACCOUNTS, days=DAYS)
    if closed is None:
        return False
    added = at.added or closed.days > 0
    if closed.accounts == ACCOUNTS:
        at.account, at.added = closed.last_account, added
        return True
    at.account, at.added = 0, False
    at.done = None if added else until
    return added
