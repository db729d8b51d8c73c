"""Withdrawals for merchants and operators to read."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from kit.audit.approvals import pending_of
from kit.audit.listing import Act, newest_acts_on
from kit.rpc import values
from kit.rpc.actors import require_merchant
from services.withdrawals import errors
from services.withdrawals.addresses import NETWORKS
from services.withdrawals.domain import STEPS, Stage, WithdrawalStatus, references_of
from services.withdrawals.operations import fields
from services.withdrawals.store import statements, withdrawals
from services.withdrawals.store.statements import Span
from services.withdrawals.store.views import MethodView, TransferView, WithdrawalView
from services.withdrawals.store.withdrawals import Filter
from services.withdrawals.transactions import writings
from services.withdrawals.wiring import Deps

ACTS_MOST: Final = 200


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
    oldest_first: bool,
    created_from: datetime | None = None,
    created_before: datetime | None = None,
    after_withdraw_uuid: str = "",
) -> Page:
    """Returns a page. Raises WITHDRAWALS_NOT_FOUND when nothing matches at all; a page past the last is empty, and so
    is one after the last item. Raises WITHDRAWAL_NOT_FOUND when `after_withdraw_uuid` is none of the merchant's.
    """
    merchant = values.uuid("merchant_id", merchant_id)
    values.page(page, per_page)
    offset = (page - 1) * per_page
    after_id = (
        values.uuid_or(errors.withdrawal_not_found, after_withdraw_uuid) if after_withdraw_uuid else None
    )
    wanted = Filter(
        merchant_id=merchant, status=status, created_from=created_from, created_before=created_before
    )
    with deps.db.transaction() as tx:
        after = None if after_id is None else withdrawals.withdrawal_of(tx, merchant, after_id)
        if after_id is not None and after is None:
            raise errors.withdrawal_not_found()
        total = withdrawals.count(tx, wanted, after=after, oldest_first=oldest_first)
        if total == 0 and after is None:
            raise errors.withdrawals_not_found()
        if offset >= total:  # this also keeps an offset from PostgreSQL that is too large for its integers
            return Page([], total)
        found = withdrawals.listed(
            tx, wanted, after=after, oldest_first=oldest_first, offset=offset, limit=per_page
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


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The filters of the operator's list as a request has them; an empty text, None and 0 mean all."""

    merchant_id: str = ""
    status: WithdrawalStatus | None = None
    stage: Stage | None = None
    method_id: int = 0
    address: str = ""
    external_tx_id: str = ""
    amount_from: str = ""
    amount_to: str = ""
    created_from: datetime | None = None
    created_before: datetime | None = None

    def checked(self) -> Filter:
        return Filter(
            merchant_id=values.uuid("merchant_id", self.merchant_id) if self.merchant_id else None,
            status=self.status,
            stage=self.stage,
            method_id=self.method_id or None,
            address=fields.address(self.address) if self.address else None,
            transaction=_spellings(self.external_tx_id) if self.external_tx_id else None,
            amount_from=values.decimal("amount_from", self.amount_from) if self.amount_from else None,
            amount_to=values.decimal("amount_to", self.amount_to) if self.amount_to else None,
            created_from=self.created_from,
            created_before=self.created_before,
        )


def list_all_withdrawals(
    deps: Deps,
    wanted: Wanted,
    *,
    limit: int,
    after_withdraw_uuid: str,
    oldest_first: bool,
    by_amount: bool = False,
) -> Sequence[WithdrawalView]:
    """Returns the list of operators, or of a member of `wanted.merchant_id`. Those of a pending stage are few, so that
    they have an order `by_amount` too. Raises WITHDRAWAL_NOT_FOUND for an unknown `after_withdraw_uuid`.
    """
    filter, limit = wanted.checked(), values.rows(limit)
    if by_amount and filter.stage not in (Stage.REQUESTED, Stage.PROCESSING):
        raise values.invalid(
            "by_amount", "only those that wait to be sent or are being sent have an order by amount"
        )
    after_id = (
        values.uuid_or(errors.withdrawal_not_found, after_withdraw_uuid) if after_withdraw_uuid else None
    )
    with deps.db.transaction() as tx:
        after = None if after_id is None else withdrawals.withdrawal(tx, after_id)
        if after_id is not None:
            if after is None:
                raise errors.withdrawal_not_found()
            require_merchant(after.merchant_id, errors.withdrawal_not_found)
        return withdrawals.listed(
            tx, filter, after=after, oldest_first=oldest_first, limit=limit, by_amount=by_amount
        )


def reasons_of_operators(deps: Deps, found: Sequence[WithdrawalView]) -> Mapping[str, str]:
    """Returns the reason of each withdrawal that no member requested, by its id."""
    objects = [f"withdrawal:{each.id}" for each in found]
    with deps.db.autocommit() as connection:
        requests = newest_acts_on(connection, objects, act="withdrawal.create", limit=len(objects))
    return {each.object.partition(":")[2]: each.note for each in requests if each.surface != "dashboard"}


def _spellings(external_tx_id: str) -> Sequence[str]:
    """Returns the spellings of the transaction on all networks."""
    text = fields.external_tx_id(external_tx_id)
    return sorted({each for network in NETWORKS for each in writings(network, text)})


@dataclass(frozen=True)
class Story:
    """A withdrawal with its method, and the acts on it and its transfers, oldest first.

    pending_approval_id  the request of it that waits for a second person
    """

    withdrawal: WithdrawalView
    method: MethodView
    acts: Sequence[Act]
    transfers: Sequence[TransferView]
    pending_approval_id: UUID | None


def get_withdrawal_story(deps: Deps, *, withdraw_uuid: str) -> Story:
    """Returns the story of one withdrawal. Raises WITHDRAWAL_NOT_FOUND, also to a member of another merchant."""
    withdrawal_id = values.uuid_or(errors.withdrawal_not_found, withdraw_uuid)
    object = f"withdrawal:{withdrawal_id}"
    with deps.db.transaction() as tx:
        withdrawal = withdrawals.withdrawal(tx, withdrawal_id)
        if withdrawal is None:
            raise errors.withdrawal_not_found()
        require_merchant(withdrawal.merchant_id, errors.withdrawal_not_found)
        method = withdrawals.method(tx, withdrawal.method_id)
        if method is None:
            raise LookupError(f"withdrawal {withdrawal_id} has a method that is not there")
        pending = pending_of(tx, object)
        return Story(
            withdrawal=withdrawal,
            method=method,
            acts=newest_acts_on(tx.connection(), [object], limit=ACTS_MOST)[::-1],
            transfers=statements.of_references(tx, references_of(withdrawal_id), Span(), limit=len(STEPS)),
            pending_approval_id=None if pending is None else pending.id,
        )
