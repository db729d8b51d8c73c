"""Withdrawals and their methods."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ColumnElement, Connection, Select, func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from kit.db.database import table_of
from kit.db.lists import Column, in_span, stands_after
from kit.db.rows import Rows
from services.withdrawals.addresses import NETWORKS
from services.withdrawals.domain import PENDING, PROCESSING, Stage, State, WithdrawalStatus
from services.withdrawals.models import Withdrawal, WithdrawalMethod
from services.withdrawals.store.views import Backlog, MethodView, WithdrawalView

_METHODS = Rows(MethodView, table_of(WithdrawalMethod))
_WITHDRAWALS = Rows(WithdrawalView, table_of(Withdrawal))
_ALL: Select[Any] = select(*_WITHDRAWALS.columns)


def methods(tx: Session) -> list[MethodView]:
    """Returns all methods, by id."""
    return _METHODS.all(tx.execute(select(*_METHODS.columns).order_by(WithdrawalMethod.id)))


def methods_to_change(tx: Session) -> list[MethodView]:
    """Returns all methods, by id, locked: none is changed or added until this transaction ends, while withdrawals
    go on.
    """
    tx.execute(text("LOCK TABLE withdrawal_methods IN SHARE ROW EXCLUSIVE MODE"))
    return methods(tx)


def method(tx: Session, method_id: int) -> MethodView | None:
    return _METHODS.one_or_none(tx.execute(select(*_METHODS.columns).where(WithdrawalMethod.id == method_id)))


def enabled_method(tx: Session, method_id: int) -> MethodView | None:
    enabled = select(*_METHODS.columns).where(WithdrawalMethod.id == method_id, WithdrawalMethod.enabled)
    return _METHODS.one_or_none(tx.execute(enabled))


def put_method(tx: Session, method: MethodView) -> None:
    """Stores a new method, or replaces the options of the one with this id; its code and network stay."""
    values = asdict(method)
    options = {name: value for name, value in values.items() if name not in {"id", "code", "network"}}
    new = insert(WithdrawalMethod).values(values)
    tx.execute(new.on_conflict_do_update(index_elements=[WithdrawalMethod.id], set_=options))


def add(tx: Session, withdrawal: WithdrawalView) -> bool:
    """Stores a new withdrawal unless its request_key has made one; returns whether it was stored.

    Waits for a concurrent insert with the same key, so that its withdrawal can be read afterwards.
    """
    new = insert(Withdrawal).values(asdict(withdrawal))
    once = new.on_conflict_do_nothing(index_elements=[Withdrawal.request_key])
    return tx.execute(once.returning(Withdrawal.id)).one_or_none() is not None


def of_request_key(tx: Session, request_key: UUID) -> WithdrawalView | None:
    return _one(tx, _ALL.where(Withdrawal.request_key == request_key))


def locked(tx: Session, withdrawal_id: UUID) -> WithdrawalView | None:
    """Returns the withdrawal, locked until this transaction ends."""
    return _one(tx, _ALL.where(Withdrawal.id == withdrawal_id).with_for_update())


_QUEUE = text(
    "SELECT pg_advisory_xact_lock(hashtextextended('transaction:' || :network || ':' || :writing, 0))"
)


def wait_for_transaction(tx: Session, network: str, writing: str) -> None:
    """Makes callers with the same transaction of the network wait for each other, until their own one ends."""
    tx.execute(_QUEUE, {"network": network, "writing": writing.lower()})


def paid_by(tx: Session, network: str, writings: Sequence[str]) -> WithdrawalView | None:
    """Returns the withdrawal that this transaction of the network has completed, or None."""
    is_written_so = func.lower(Withdrawal.external_tx_id).in_(writings)
    return _one(tx, _ALL.where(Withdrawal.network == network, is_written_so).limit(1))


def advance(
    tx: Session, withdrawal: WithdrawalView, target: State, *, external_tx_id: str | None, at: datetime
) -> WithdrawalView:
    """Moves the withdrawal to `target` if its state is still the one that was read; raises NoResultFound otherwise.

    IntegrityError `uq_withdrawals_network_external_tx_id` when that transaction has paid another withdrawal.
    """
    step = (
        update(Withdrawal)
        .where(
            Withdrawal.id == withdrawal.id,
            Withdrawal.status == withdrawal.status,
            Withdrawal.substatus.is_not_distinct_from(withdrawal.substatus),
        )
        .values(
            status=target.status,
            substatus=target.substatus,
            external_tx_id=external_tx_id,
            updated_at=at,
            processed_at=None if target.status is PENDING.status else at,
        )
        .returning(*_WITHDRAWALS.columns)
    )
    return _WITHDRAWALS.make(*tx.execute(step).one())


def withdrawal_of(tx: Session, merchant_id: UUID, withdrawal_id: UUID) -> WithdrawalView | None:
    """Returns the merchant's own withdrawal."""
    return _one(tx, _ALL.where(Withdrawal.id == withdrawal_id, Withdrawal.merchant_id == merchant_id))


def _one(tx: Session, query: Select[Any]) -> WithdrawalView | None:
    return _WITHDRAWALS.one_or_none(tx.execute(query))


@dataclass(frozen=True, kw_only=True)
class Filter:
    """The withdrawals of the operator's list; null filters match all.

    transaction  the transaction in all its lower-case spellings
    """

    merchant_id: UUID | None = None
    status: WithdrawalStatus | None = None
    stage: Stage | None = None
    method_id: int | None = None
    address: str | None = None
    transaction: Sequence[str] | None = None
    amount_from: Decimal | None = None
    amount_to: Decimal | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        if self.merchant_id is not None:
            yield Withdrawal.merchant_id == self.merchant_id
        if self.status is not None:
            yield Withdrawal.status == self.status
        yield from in_span(Withdrawal.created_at, self.created_from, self.created_before)
        if self.stage is not None:
            yield from _STAGES[self.stage]
        if self.method_id is not None:
            yield Withdrawal.method_id == self.method_id
        if self.address is not None:
            yield func.lower(Withdrawal.address) == self.address.lower()
        if self.transaction is not None:
            # The index begins with the network.
            yield Withdrawal.network.in_(sorted(NETWORKS))
            yield func.lower(Withdrawal.external_tx_id).in_(self.transaction)
        if self.amount_from is not None:
            yield Withdrawal.amount >= self.amount_from
        if self.amount_to is not None:
            yield Withdrawal.amount <= self.amount_to


_PENDING: Final = Withdrawal.status == WithdrawalStatus.PENDING
_STAGES: Final[Mapping[Stage, Sequence[ColumnElement[bool]]]] = {
    Stage.REQUESTED: (_PENDING, Withdrawal.substatus.is_(None)),
    Stage.PROCESSING: (_PENDING, Withdrawal.substatus == PROCESSING.substatus),
    Stage.DONE: (~_PENDING,),
}


def count(tx: Session, filter: Filter, *, after: WithdrawalView | None, oldest_first: bool) -> int:
    """Returns the number of withdrawals that `listed` has in the order of time."""
    matching = select(func.count()).select_from(Withdrawal).where(*filter.conditions())
    return tx.scalar(_after(matching, _BY_TIME, after, oldest_first=oldest_first)) or 0


def listed(
    tx: Session,
    filter: Filter,
    *,
    after: WithdrawalView | None,
    oldest_first: bool,
    limit: int,
    offset: int = 0,
    by_amount: bool = False,
) -> list[WithdrawalView]:
    """Returns the first withdrawals that the filter leaves: from the start, or those that stand after `after`."""
    keys = (Withdrawal.amount, Withdrawal.id) if by_amount else _BY_TIME
    query = _after(_ALL.where(*filter.conditions()), keys, after, oldest_first=oldest_first)
    order = keys if oldest_first else [each.desc() for each in keys]
    return _WITHDRAWALS.all(tx.execute(query.order_by(*order).offset(offset).limit(limit)))


_BY_TIME: Final = (Withdrawal.created_at, Withdrawal.id)


def _after(
    query: Select[Any], keys: Sequence[Column], after: WithdrawalView | None, *, oldest_first: bool
) -> Select[Any]:
    if after is None:
        return query
    place = [getattr(after, each.key) for each in keys]
    return query.where(stands_after(keys, place, oldest_first=oldest_first))


def withdrawal(tx: Session, withdrawal_id: UUID) -> WithdrawalView | None:
    return _one(tx, _ALL.where(Withdrawal.id == withdrawal_id))


_BACKLOG = text("""
SELECT count(*) FILTER (WHERE substatus IS NULL) AS pending,
       count(*) FILTER (WHERE substatus = 'processing') AS processing,
       (SELECT count(*) FROM refunds WHERE status = 'ready') AS refunds_ready,
       (SELECT count(*) FROM refunds WHERE status = 'sent') AS refunds_sent,
       (SELECT count(*) FROM parked WHERE parked_at IS NOT NULL) AS parked
FROM withdrawals WHERE status = 'pending'
""")


def backlog(connection: Connection) -> Backlog:
    return Backlog(*connection.execute(_BACKLOG).one())
