"""Withdrawals for merchants and operators to read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kit.rpc import values
from services.withdrawals import errors
from services.withdrawals.domain import WithdrawalStatus
from services.withdrawals.store import withdrawals
from services.withdrawals.store.views import WithdrawalView
from services.withdrawals.wiring import Deps


@dataclass(frozen=True)
class Page:
    """One page of the matching withdrawals; `total` counts all that match."""

    withdrawals: Sequence[WithdrawalView]
    total: int


def list_withdrawals(
    deps: Deps,
    *,
    merchant_id: str,
    page: int,
    per_page: int,
    status: WithdrawalStatus | None,
    newest_first: bool,
) -> Page:
    """Returns a page. Raises WITHDRAWALS_NOT_FOUND when nothing matches at all; a page past the last is empty."""
    merchant = values.uuid("merchant_id", merchant_id)
    values.page(page, per_page)
    offset = (page - 1) * per_page
    with deps.db.transaction() as tx:
        total = withdrawals.count(tx, merchant_id=merchant, status=status)
        if total == 0:
            raise errors.withdrawals_not_found()
        if offset >= total:  # this also keeps an offset from PostgreSQL that is too large for its integers
            return Page([], total)
        found = withdrawals.page(
            tx,
            merchant_id=merchant,
            status=status,
            newest_first=newest_first,
            offset=offset,
            limit=per_page,
        )
    return Page(found, total)


def get_withdrawal(deps: Deps, *, merchant_id: str, withdraw_uuid: str) -> WithdrawalView:
    """Returns one withdrawal. Raises WITHDRAWAL_NOT_FOUND for an unknown one and for another merchant's."""
    merchant = values.uuid("merchant_id", merchant_id)
    withdrawal_id = values.uuid_or(errors.withdrawal_not_found, withdraw_uuid)
    with deps.db.transaction() as tx:
        withdrawal = withdrawals.withdrawal_of(tx, merchant, withdrawal_id)
    if withdrawal is None:
        raise errors.withdrawal_not_found()
    return withdrawal


def list_all_withdrawals(
    deps: Deps,
    *,
    merchant_id: str,
    status: WithdrawalStatus | None,
    limit: int,
    created_from: datetime | None = None,
    created_before: datetime | None = None,
    after_withdraw_uuid: str = "",
) -> Sequence[WithdrawalView]:
    """Returns the operator's list, newest first; an empty `merchant_id` means all merchants.

    Raises WITHDRAWAL_NOT_FOUND for an unknown `after_withdraw_uuid`.
    """
    merchant = values.uuid("merchant_id", merchant_id) if merchant_id else None
    limit = values.rows(limit)
    after_id = (
        values.uuid_or(errors.withdrawal_not_found, after_withdraw_uuid) if after_withdraw_uuid else None
    )
    with deps.db.transaction() as tx:
        after = None if after_id is None else withdrawals.withdrawal(tx, after_id)
        if after is None and after_id is not None:
            raise errors.withdrawal_not_found()
        return withdrawals.newest(
            tx,
            merchant_id=merchant,
            status=status,
            created_from=created_from,
            created_before=created_before,
            after=after,
            limit=limit,
        )
