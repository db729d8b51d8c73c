"""Transfers of one merchant, invoice or withdrawal in the order of time, and sums of them.

Sums read the two indexes by account only. A balance of the past is that of the end of a day with the transfers since,
or that of this moment without the transfers since, so call these functions in one snapshot (`begin_snapshot` of
`checks`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import (
    ColumnElement,
    ScalarSelect,
    Select,
    func,
    literal,
    literal_column,
    select,
    tuple_,
    union_all,
)
from sqlalchemy.orm import Session, aliased

from services.withdrawals.domain import AccountKind, Held, TransferKind
from services.withdrawals.models import Account, Transfer
from services.withdrawals.store import daily
from services.withdrawals.store.daily import DayEnd
from services.withdrawals.store.views import TransferSum, TransferView

_NOTHING: Final = Decimal(0)
_FIRST_ID: Final = UUID(int=0)
# Written out, so that PostgreSQL sees that the condition is that of the index.
_OF_WITHDRAWALS: Final = Transfer.reference >= literal_column("'withdrawal:'")
_COLUMNS: Final = (
    Transfer.id,
    Transfer.reference,
    Transfer.amount,
    Transfer.created_at,
    Transfer.debit_account,
    Transfer.credit_account,
)


@dataclass(frozen=True)
class Place:
    """A place in the order of time and id. The one without a transfer stands before all transfers of its time."""

    at: datetime
    id: UUID = _FIRST_ID


@dataclass(frozen=True)
class Span:
    """The transfers after one place, before another, and up to and with the one at a third; a null one is no bound."""

    after: Place | None = None
    before: Place | None = None
    through: Place | None = None

    def conditions(self) -> list[ColumnElement[bool]]:
        place: Any = tuple_(Transfer.created_at, Transfer.id)
        found: list[ColumnElement[bool]] = []
        if self.after is not None:
            found.append(place > tuple_(literal(self.after.at), literal(self.after.id)))
        if self.before is not None:
            found.append(place < tuple_(literal(self.before.at), literal(self.before.id)))
        if self.through is not None:
            found.append(place <= tuple_(literal(self.through.at), literal(self.through.id)))
        return found


@dataclass(frozen=True)
class MerchantAccounts:
    """The ids of a merchant's two accounts, and the money in them."""

    available: int
    reserved: int
    held: Held


def accounts_of(tx: Session, merchant_id: UUID) -> MerchantAccounts | None:
    """Returns the merchant's accounts; None while nothing was ever credited."""
    rows = tx.execute(
        select(Account.kind, Account.id, Account.balance).where(Account.merchant_id == merchant_id)
    )
    found = {AccountKind(kind): (id, balance) for kind, id, balance in rows if balance is not None}
    if not found:
        return None
    available, reserved = found[AccountKind.AVAILABLE], found[AccountKind.RESERVED]
    return MerchantAccounts(available[0], reserved[0], Held(available[1], reserved[1]))


def place_of(tx: Session, transfer_id: UUID, accounts: MerchantAccounts | None = None) -> Place | None:
    """Returns the place of a transfer; None for an unknown one, and with a merchant's accounts for one of another."""
    query = select(Transfer.created_at).where(Transfer.id == transfer_id)
    if accounts is not None:
        own = (accounts.available, accounts.reserved)
        query = query.where(Transfer.credit_account.in_(own) | Transfer.debit_account.in_(own))
    at = tx.scalar(query)
    return None if at is None else Place(at, transfer_id)


def of_merchant(tx: Session, accounts: MerchantAccounts, span: Span, *, limit: int) -> list[TransferView]:
    """Returns the first transfers of the merchant in the span, oldest first."""
    arrived = Transfer.credit_account == accounts.available
    left = Transfer.debit_account == accounts.available
    gone = (Transfer.debit_account == accounts.reserved) & (Transfer.credit_account != accounts.available)
    return _found(tx, [(arrived,), (left, _OF_WITHDRAWALS), (gone, _OF_WITHDRAWALS)], span, limit)


def of_references(tx: Session, references: Sequence[str], span: Span, *, limit: int) -> list[TransferView]:
    """Returns the first transfers with these references in the span, oldest first."""
    return _found(tx, [(Transfer.reference.in_(references),)], span, limit)


def _found(
    tx: Session, alternatives: Sequence[Sequence[ColumnElement[bool]]], span: Span, limit: int
) -> list[TransferView]:
    """Returns transfers that fit one of the alternatives. Each is read from its index in order, to the limit."""
    parts = [
        select(
            select(*_COLUMNS)
            .where(*conditions, *span.conditions())
            .order_by(Transfer.created_at, Transfer.id)
            .limit(limit)
            .subquery()
        )
        for conditions in alternatives
    ]
    moved = union_all(*parts).subquery()
    debit, credit = aliased(Account), aliased(Account)
    query = (
        select(
            moved.c.id,
            moved.c.reference,
            func.coalesce(credit.merchant_id, debit.merchant_id),
            moved.c.amount,
            moved.c.created_at,
        )
        .join(debit, debit.id == moved.c.debit_account)
        .join(credit, credit.id == moved.c.credit_account)
        .order_by(moved.c.created_at, moved.c.id)
        .limit(limit)
    )
    return [_transfer(*row) for row in tx.execute(query)]


def _transfer(
    id: UUID, reference: str, merchant_id: UUID, amount: Decimal, created_at: datetime
) -> TransferView:
    kind, _, rest = reference.partition(":")
    object_id, _, step = rest.partition(":")
    is_credit = kind == "invoice"
    return TransferView(
        id=id,
        kind=TransferKind.CREDIT if is_credit else TransferKind(step),
        merchant_id=merchant_id,
        invoice_id=UUID(object_id) if is_credit else None,
        withdrawal_id=None if is_credit else UUID(object_id),
        amount=amount,
        created_at=created_at,
    )


def held_after(tx: Session, accounts: MerchantAccounts, place: Place) -> Held:
    """Returns the merchant's money after the transfers up to this place."""
    both = (accounts.available, accounts.reserved)
    ends = daily.ends_before(tx, both, place.at)
    if ends is None:
        later = _moved(tx, [_net(account, Span(after=place)) for account in both])
        return Held(accounts.held.available - later[0], accounts.held.reserved - later[1])
    since = [Span(after=_day_after(ends.get(account)), through=place) for account in both]
    moved = _moved(tx, [_net(*each) for each in zip(both, since, strict=True)])
    return Held(*(_balance(ends.get(account)) + amount for account, amount in zip(both, moved, strict=True)))


def _moved(tx: Session, sums: Sequence[ColumnElement[Decimal]]) -> Sequence[Decimal]:
    return tuple(tx.execute(select(*sums)).one())


def _day_after(end: DayEnd | None) -> Place | None:
    return None if end is None else Place(datetime.combine(end.day + timedelta(days=1), time(), UTC))


def _balance(end: DayEnd | None) -> Decimal:
    return _NOTHING if end is None else end.balance


def _net(account: int, span: Span) -> ColumnElement[Decimal]:
    """Returns what the transfers in the span added to the account."""
    into = _sum(Transfer.credit_account == account, span=span)
    return into - _sum(Transfer.debit_account == account, _OF_WITHDRAWALS, span=span)


def _sum(*conditions: ColumnElement[bool], span: Span) -> ScalarSelect[Any]:
    query: Select[Any] = select(func.coalesce(func.sum(Transfer.amount), _NOTHING))
    return query.where(*conditions, *span.conditions()).scalar_subquery()


def sums_of(tx: Session, accounts: MerchantAccounts, span: Span) -> list[TransferSum]:
    """Returns the number and the sum of the merchant's transfers of each kind that the span has, in their order."""
    counted = (func.count(), func.coalesce(func.sum(Transfer.amount), _NOTHING))
    arrived = tx.execute(
        select(*counted).where(Transfer.credit_account == accounts.available, *span.conditions())
    ).one()
    step = func.split_part(Transfer.reference, ":", 3)
    ours = Transfer.debit_account.in_((accounts.available, accounts.reserved))
    of_withdrawals = select(step, *counted).where(ours, _OF_WITHDRAWALS, *span.conditions()).group_by(step)
    found = {TransferKind(kind): (count, amount) for kind, count, amount in tx.execute(of_withdrawals)}
    # All that arrived and was not released is credited: so the many credits are summed from their index alone.
    released = found.get(TransferKind.RELEASE, (0, _NOTHING))
    found[TransferKind.CREDIT] = (arrived[0] - released[0], arrived[1] - released[1])
    return [TransferSum(kind, *found[kind]) for kind in TransferKind if kind in found and found[kind][0]]
