"""The day's end of accounts."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from fiatgate.bank.v1 import bank_pb2 as pb
from kit.base.account_forms import account_key
from kit.base.proto import most_of
from kit.rpc import values
from services.bank.store import days
from services.bank.store.days import Account, Day
from services.bank.wiring import Deps

DAYS_MOST: Final = 366
ACCOUNTS_MOST: Final = 1000


def list_days(
    deps: Deps, *, first_day: str, last_day: str, account: str, after_key: str, limit: int
) -> Sequence[Day]:
    """Returns the accounts' days, newest first. Raises VALIDATION_ERROR."""
    first, last = (
        values.parsed(name, text, date.fromisoformat)
        for name, text in (("first_day", first_day), ("last_day", last_day))
    )
    if not timedelta(0) <= last - first < timedelta(days=DAYS_MOST):
        raise values.invalid("last_day", f"Expected the first day or a later one, at most {DAYS_MOST} days")
    values.text("after_key", after_key, least=0, most=most_of(pb.ListDaysRequest, "after_key"))
    with deps.db.autocommit() as connection:
        return days.days(
            connection,
            values.rows(limit),
            first_day=first,
            last_day=last,
            account=account_key(account),
            after=values.parsed("after_key", after_key, _key) if after_key else None,
        )


def list_accounts(deps: Deps) -> Sequence[Account]:
    """Returns the accounts that have lines, by name."""
    with deps.db.autocommit() as connection:
        return days.accounts(connection, ACCOUNTS_MOST)


def _key(text: str) -> tuple[date, str, str]:
    day, _, rest = text.partition("/")
    account, _, currency = rest.partition("/")
    return date.fromisoformat(day), account, currency
